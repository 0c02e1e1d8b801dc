"""Error classes for the error codes of brokers, one per code, and their base classes.

The codes are those of Apache Kafka 4.4.0 (``org.apache.kafka.common.protocol.Errors``), the names
of -1 and 1 to 16 those of 0.9.5. Programs import the classes from :mod:`kafka.errors`, which
documents their flags.
"""

from __future__ import annotations

from typing import Any, Dict, Optional, Type

from kafka.client_errors import (
    CommitFailedError,
    InvalidMetadataError,
    KafkaError,
    RetriableError,
)

kafka_errors: Dict[int, Type[BrokerResponseError]] = {}


class BrokerResponseError(KafkaError):
    """Base of the errors that a broker reports by an error code."""

    errno: Optional[int] = None
    message: Optional[str] = None
    description: Optional[str] = None

    def __init_subclass__(
        cls, errno: Optional[int] = None, message: Optional[str] = None, **kwargs: Any
    ) -> None:
        """Register the class for a code; the message defaults to its name in upper snake case."""
        super().__init_subclass__(**kwargs)
        if errno is None:
            return
        name = cls.__name__[: -len('Error')]
        cls.errno = errno
        cls.message = message or ''.join('_' + c if c.isupper() else c for c in name)[1:].upper()
        cls.description = cls.__doc__
        kafka_errors[errno] = cls

    def _title(self) -> str:
        return '[Error %s] %s' % (self.errno, type(self).__name__)


class AuthorizationError(BrokerResponseError):
    """Base of the errors for requests that an access rule forbids."""


class RetriableBrokerError(RetriableError, BrokerResponseError):
    """Base of the errors after which the same request may succeed."""


class StaleMetadataBrokerError(InvalidMetadataError, BrokerResponseError):
    """Base of the errors after which metadata has to be refreshed."""


class CoordinatorMovedError(RetriableBrokerError):
    """Base of the errors after which the coordinator has to be looked up again."""

    refind_coordinator = True


class FatalBrokerError(BrokerResponseError):
    """Base of the errors that end the producer or the group member."""

    fatal = True


# The table: one class per code and its meaning; the message is derived from the name unless given.
# fmt: off
class NoError(BrokerResponseError, errno=0, message='NO_ERROR'):
    """The request succeeded."""
class UnknownError(BrokerResponseError, errno=-1):
    """The broker failed in a way that has no error code."""
class OffsetOutOfRangeError(BrokerResponseError, errno=1):
    """The log does not contain the requested offset."""
class InvalidMessageError(RetriableBrokerError, errno=2):
    """A message is corrupt or breaks a rule of its topic."""
class UnknownTopicOrPartitionError(
        StaleMetadataBrokerError, errno=3, message='UNKNOWN_TOPIC_OR_PARTITON'):  # (sic)
    """The broker does not host this topic or partition."""
class InvalidFetchRequestError(BrokerResponseError, errno=4, message='INVALID_FETCH_SIZE'):
    """The fetch size is not acceptable."""
class LeaderNotAvailableError(StaleMetadataBrokerError, errno=5):
    """The partition has no leader at the moment."""
class NotLeaderForPartitionError(StaleMetadataBrokerError, errno=6):
    """The broker does not lead (or follow) the partition."""
class RequestTimedOutError(RetriableBrokerError, errno=7):
    """The broker did not finish the request in the given time."""
class BrokerNotAvailableError(BrokerResponseError, errno=8):
    """The required broker is not available."""
class ReplicaNotAvailableError(StaleMetadataBrokerError, errno=9):
    """A replica of the partition is not available."""
class MessageSizeTooLargeError(BrokerResponseError, errno=10):
    """A message is larger than the topic allows."""
class StaleControllerEpochError(BrokerResponseError, errno=11):
    """The controller has changed meanwhile."""
class OffsetMetadataTooLargeError(BrokerResponseError, errno=12):
    """The metadata text of a committed offset is too long."""
class StaleLeaderEpochCodeError(
        StaleMetadataBrokerError, errno=13, message='STALE_LEADER_EPOCH_CODE'):
    """The server disconnected before it could answer."""
class OffsetsLoadInProgressCode(
        RetriableBrokerError, errno=14, message='OFFSETS_LOAD_IN_PROGRESS_CODE'):
    """The coordinator is still loading the group's state."""
class ConsumerCoordinatorNotAvailableCode(
        CoordinatorMovedError, errno=15, message='CONSUMER_COORDINATOR_NOT_AVAILABLE_CODE'):
    """The coordinator is not available."""
class NotCoordinatorForConsumerCode(
        CoordinatorMovedError, errno=16, message='NOT_COORDINATOR_FOR_CONSUMER_CODE'):
    """The broker is not the coordinator."""
class InvalidTopicError(BrokerResponseError, errno=17):
    """The topic name is not allowed, or the topic may not be written to."""
class RecordListTooLargeError(BrokerResponseError, errno=18):
    """A batch is larger than a segment of the log may be."""
class NotEnoughReplicasError(RetriableBrokerError, errno=19):
    """Too few replicas are in sync; nothing was written."""
class NotEnoughReplicasAfterAppendError(RetriableBrokerError, errno=20):
    """Too few replicas are in sync; the leader has written the records."""
class InvalidRequiredAcksError(BrokerResponseError, errno=21):
    """The number of acknowledgements is not acceptable."""
class IllegalGenerationError(BrokerResponseError, errno=22):
    """The group has moved on to another generation."""
class InconsistentGroupProtocolError(BrokerResponseError, errno=23):
    """The member shares no assignment protocol with its group."""
class InvalidGroupIdError(BrokerResponseError, errno=24):
    """The group id is not allowed."""
class UnknownMemberIdError(BrokerResponseError, errno=25):
    """The coordinator does not know this member."""
class InvalidSessionTimeoutError(BrokerResponseError, errno=26):
    """The session time-out is outside the bounds the broker sets."""
class RebalanceInProgressError(BrokerResponseError, errno=27):
    """The group is rebalancing: the member has to join again."""
class InvalidCommitOffsetSizeError(BrokerResponseError, errno=28):
    """The offsets are too much for one commit."""
class TopicAuthorizationFailedError(AuthorizationError, errno=29):
    """Not allowed to use the topic."""
class GroupAuthorizationFailedError(AuthorizationError, errno=30):
    """Not allowed to use the group."""
class ClusterAuthorizationFailedError(AuthorizationError, errno=31):
    """Not allowed to act upon the cluster."""
class InvalidTimestampError(BrokerResponseError, errno=32):
    """A timestamp is too far from the broker's clock, or malformed."""
class UnsupportedSaslMechanismError(FatalBrokerError, errno=33):
    """The broker does not offer this SASL mechanism."""
class IllegalSaslStateError(BrokerResponseError, errno=34):
    """The request does not fit the state of authentication."""
class UnsupportedVersionError(BrokerResponseError, errno=35):
    """The broker does not serve this version of the API."""
class TopicAlreadyExistsError(BrokerResponseError, errno=36):
    """A topic of that name exists."""
class InvalidPartitionsError(BrokerResponseError, errno=37):
    """The number of partitions is not acceptable."""
class InvalidReplicationFactorError(BrokerResponseError, errno=38):
    """The replication factor is below one or above the number of brokers."""
class InvalidReplicationAssignmentError(BrokerResponseError, errno=39):
    """The assignment of replicas is not acceptable."""
class InvalidConfigurationError(BrokerResponseError, errno=40, message='INVALID_CONFIG'):
    """A configuration value is not acceptable."""
class NotControllerError(RetriableBrokerError, errno=41):
    """The broker is not the controller."""
class InvalidRequestError(BrokerResponseError, errno=42):
    """The request is malformed or contradicts itself."""
class UnsupportedForMessageFormatError(BrokerResponseError, errno=43):
    """The log's message format does not support this."""
class PolicyViolationError(BrokerResponseError, errno=44):
    """The request breaks a policy that the broker enforces."""
class OutOfOrderSequenceNumberError(BrokerResponseError, errno=45):
    """The sequence number of a batch does not follow the last one."""
class DuplicateSequenceNumberError(BrokerResponseError, errno=46):
    """The broker has this batch already."""
class InvalidProducerEpochError(BrokerResponseError, errno=47):
    """The producer's epoch is older than the one the broker knows."""
class InvalidTxnStateError(BrokerResponseError, errno=48):
    """The request does not fit the state of the transaction."""
class InvalidProducerIdMappingError(BrokerResponseError, errno=49):
    """The producer id does not belong to the transactional id."""
class InvalidTransactionTimeoutError(BrokerResponseError, errno=50):
    """The transaction time-out is above the broker's maximum."""
class ConcurrentTransactionsError(RetriableBrokerError, errno=51):
    """The previous transaction of this producer is still being completed."""
class TransactionCoordinatorFencedError(BrokerResponseError, errno=52):
    """The coordinator that sent this has been replaced."""
class TransactionalIdAuthorizationFailedError(AuthorizationError, errno=53):
    """Not allowed to use the transactional id."""
class SecurityDisabledError(BrokerResponseError, errno=54):
    """The broker has no security features enabled."""
class OperationNotAttemptedError(BrokerResponseError, errno=55):
    """Not attempted, because another part of the request was refused."""
class KafkaStorageError(StaleMetadataBrokerError, errno=56, message='KAFKA_STORAGE_ERROR'):
    """The broker cannot access the disk that holds the log."""
class LogDirNotFoundError(BrokerResponseError, errno=57):
    """The broker has no such log directory."""
class SaslAuthenticationFailedError(FatalBrokerError, errno=58):
    """The credentials were refused."""
    login_again = False  # whether an immediate login on a new connection may succeed
class UnknownProducerIdError(BrokerResponseError, errno=59):
    """The broker has forgotten this producer id."""
class ReassignmentInProgressError(BrokerResponseError, errno=60):
    """The partition is being moved."""
class DelegationTokenAuthDisabledError(BrokerResponseError, errno=61):
    """Delegation tokens are not enabled."""
class DelegationTokenNotFoundError(BrokerResponseError, errno=62):
    """The broker does not know the delegation token."""
class DelegationTokenOwnerMismatchError(BrokerResponseError, errno=63):
    """The delegation token has another owner."""
class DelegationTokenRequestNotAllowedError(BrokerResponseError, errno=64):
    """Token requests are not allowed on a connection with this authentication."""
class DelegationTokenAuthorizationFailedError(AuthorizationError, errno=65):
    """Not allowed to use delegation tokens."""
class DelegationTokenExpiredError(BrokerResponseError, errno=66):
    """The delegation token has expired."""
class InvalidPrincipalTypeError(BrokerResponseError, errno=67):
    """The type of principal is not supported."""
class NonEmptyGroupError(BrokerResponseError, errno=68):
    """The group still has members."""
class GroupIdNotFoundError(BrokerResponseError, errno=69):
    """There is no such group."""
class FetchSessionIdNotFoundError(RetriableBrokerError, errno=70):
    """The broker has forgotten the fetch session."""
class InvalidFetchSessionEpochError(RetriableBrokerError, errno=71):
    """The fetch session epoch is not the expected one."""
class ListenerNotFoundError(StaleMetadataBrokerError, errno=72):
    """The leader has no listener of the kind that received the request."""
class TopicDeletionDisabledError(BrokerResponseError, errno=73):
    """Deleting topics is not enabled."""
class FencedLeaderEpochError(StaleMetadataBrokerError, errno=74):
    """The leader epoch of the request is older than the broker's."""
class UnknownLeaderEpochError(StaleMetadataBrokerError, errno=75):
    """The leader epoch of the request is newer than the broker's."""
    refresh_metadata = False  # the broker's metadata is older than the client's
class UnsupportedCompressionTypeError(BrokerResponseError, errno=76):
    """This version of the request cannot carry the compression of the records."""
class StaleBrokerEpochError(BrokerResponseError, errno=77):
    """The broker has been restarted since."""
class OffsetNotAvailableError(RetriableBrokerError, errno=78):
    """A new leader does not know the end of its log yet."""
class MemberIdRequiredError(BrokerResponseError, errno=79):
    """The member has to join again with the returned member id."""
class PreferredLeaderNotAvailableError(StaleMetadataBrokerError, errno=80):
    """The preferred leader is not available."""
class GroupMaxSizeReachedError(BrokerResponseError, errno=81):
    """The group has its maximum number of members."""
class FencedInstanceIdError(FatalBrokerError, errno=82):
    """Another member has joined with the same instance id."""
class EligibleLeadersNotAvailableError(StaleMetadataBrokerError, errno=83):
    """No replica that could become leader is available."""
class ElectionNotNeededError(StaleMetadataBrokerError, errno=84):
    """The partition already has the elected leader."""
class NoReassignmentInProgressError(BrokerResponseError, errno=85):
    """The partition is not being moved."""
class GroupSubscribedToTopicError(BrokerResponseError, errno=86):
    """The group still reads the topic whose offsets are to be deleted."""
class InvalidRecordError(BrokerResponseError, errno=87):
    """A record breaks a rule of its topic."""
class UnstableOffsetCommitError(RetriableBrokerError, errno=88):
    """The offset is part of a transaction that is not finished."""
class ThrottlingQuotaExceededError(RetriableBrokerError, errno=89):
    """The quota of changes is used up for now."""
class ProducerFencedError(FatalBrokerError, errno=90):
    """A newer producer has taken over the transactional id."""
class ResourceNotFoundError(BrokerResponseError, errno=91):
    """No resource of that name exists."""
class DuplicateResourceError(BrokerResponseError, errno=92):
    """The request names a resource twice."""
class UnacceptableCredentialError(BrokerResponseError, errno=93):
    """The credential does not meet the broker's requirements."""
class InconsistentVoterSetError(BrokerResponseError, errno=94):
    """The request names voters other than the configured ones."""
class InvalidUpdateVersionError(BrokerResponseError, errno=95):
    """The update carries a version that was not expected."""
class FeatureUpdateFailedError(BrokerResponseError, errno=96):
    """The features could not be changed."""
class PrincipalDeserializationFailureError(BrokerResponseError, errno=97):
    """The principal of a forwarded request cannot be decoded."""
class SnapshotNotFoundError(BrokerResponseError, errno=98):
    """The snapshot does not exist."""
class PositionOutOfRangeError(BrokerResponseError, errno=99):
    """The requested position is beyond the end of the snapshot."""
class UnknownTopicIdError(StaleMetadataBrokerError, errno=100):
    """The broker hosts no topic with this id."""
class DuplicateBrokerRegistrationError(BrokerResponseError, errno=101):
    """A broker with this id is already registered."""
class BrokerIdNotRegisteredError(BrokerResponseError, errno=102):
    """No broker with this id is registered."""
class InconsistentTopicIdError(StaleMetadataBrokerError, errno=103):
    """The topic of that name has another id."""
class InconsistentClusterIdError(BrokerResponseError, errno=104):
    """The request was meant for another cluster."""
class TransactionalIdNotFoundError(BrokerResponseError, errno=105):
    """The coordinator does not know the transactional id."""
class FetchSessionTopicIdError(
        RetriableBrokerError, errno=106, message='FETCH_SESSION_TOPIC_ID_ERROR'):
    """The fetch session mixes requests with and without topic ids."""
class IneligibleReplicaError(BrokerResponseError, errno=107):
    """The replica may not join the in-sync replicas."""
class NewLeaderElectedError(BrokerResponseError, errno=108):
    """The change has made another replica the leader."""
class OffsetMovedToTieredStorageError(BrokerResponseError, errno=109):
    """The offset is only available in remote storage."""
class FencedMemberEpochError(BrokerResponseError, errno=110):
    """The member's epoch is not the coordinator's: it has lost its partitions."""
class UnreleasedInstanceIdError(FatalBrokerError, errno=111):
    """A live member still uses this instance id."""
class UnsupportedAssignorError(FatalBrokerError, errno=112):
    """The coordinator does not know this assignor."""
class StaleMemberEpochError(BrokerResponseError, errno=113):
    """The member has a newer epoch by now."""
class MismatchedEndpointTypeError(BrokerResponseError, errno=114):
    """A request for controllers was sent to a broker, or the other way round."""
class UnsupportedEndpointTypeError(BrokerResponseError, errno=115):
    """This kind of endpoint cannot be requested here."""
class UnknownControllerIdError(BrokerResponseError, errno=116):
    """No controller with this id is known."""
class UnknownSubscriptionIdError(BrokerResponseError, errno=117):
    """The telemetry subscription is out of date."""
class TelemetryTooLargeError(BrokerResponseError, errno=118):
    """The pushed telemetry is larger than the broker accepts."""
class InvalidRegistrationError(BrokerResponseError, errno=119):
    """The controller refused the registration."""
class TransactionAbortableError(BrokerResponseError, errno=120):
    """The transaction can only be aborted; the producer can continue."""
class InvalidRecordStateError(BrokerResponseError, errno=121):
    """A share group's record cannot be acknowledged like this."""
class ShareSessionNotFoundError(RetriableBrokerError, errno=122):
    """The broker has forgotten the share session."""
class InvalidShareSessionEpochError(RetriableBrokerError, errno=123):
    """The share session epoch is not the expected one."""
class FencedStateEpochError(BrokerResponseError, errno=124):
    """A newer state of the share partition is known."""
class InvalidVoterKeyError(BrokerResponseError, errno=125):
    """The voter key is not the receiver's."""
class DuplicateVoterError(BrokerResponseError, errno=126):
    """The voter is already in the set."""
class VoterNotFoundError(BrokerResponseError, errno=127):
    """The voter is not in the set."""
class InvalidRegularExpressionError(FatalBrokerError, errno=128):
    """The broker cannot compile the subscription pattern."""
class RebootstrapRequiredError(BrokerResponseError, errno=129):
    """The client has to start over from its bootstrap servers."""
class StreamsInvalidTopologyError(BrokerResponseError, errno=130):
    """The topology of a streams group is not acceptable."""
class StreamsInvalidTopologyEpochError(BrokerResponseError, errno=131):
    """The topology epoch of a streams group is not acceptable."""
class StreamsTopologyFencedError(BrokerResponseError, errno=132):
    """The streams group runs a newer topology."""
class ShareSessionLimitReachedError(RetriableBrokerError, errno=133):
    """The broker has its maximum number of share sessions."""
class GroupDeletionFailedError(BrokerResponseError, errno=134):
    """The group could not be deleted."""
class StreamsTopologyDescriptionUpdateFailedError(BrokerResponseError, errno=135):
    """The description of a streams topology could not be stored."""
class ControllerIdNotRegisteredError(BrokerResponseError, errno=136):
    """No controller with this id is registered."""
# fmt: on


class IncompatibleBrokerVersion(UnsupportedVersionError):
    """The broker is too old for what the call needs."""


class FencedEpochError(ProducerFencedError, InvalidProducerEpochError):
    """A leader knows a newer epoch of the transactional id, but not which producer uses it."""

    errno, message, fatal = 47, 'INVALID_PRODUCER_EPOCH', False  # the coordinator can say which


class CommitInRebalanceError(CommitFailedError, RebalanceInProgressError):
    """The group rebalances: partitions still owned afterwards can be committed then.

    1.x and 2.x raised the first of its bases, Java the second.
    """


class UnrecognizedBrokerError(UnknownError):
    """An error code that is newer than this table; it is the class attribute ``errno``."""
