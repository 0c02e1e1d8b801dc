"""Guards of the APIs about the cluster, its users and ACLs."""

from __future__ import annotations

from typing import Any, Dict, Tuple

from kafka.protocol.admin.acls import CreateAclsRequest, DeleteAclsRequest, DescribeAclsRequest
from kafka.protocol.admin.cluster import (
    AddRaftVoterRequest,
    DescribeClusterRequest,
    DescribeQuorumRequest,
    RemoveRaftVoterRequest,
    UnregisterBrokerRequest,
    UnregisterControllerRequest,
    UpdateFeaturesRequest,
)
from kafka.protocol.admin.configs import ListConfigResourcesRequest
from kafka.protocol.admin.partitions import (
    AlterPartitionReassignmentsRequest,
    AlterReplicaLogDirsRequest,
    DescribeLogDirsRequest,
    ElectLeadersRequest,
    ListPartitionReassignmentsRequest,
)
from kafka.protocol.admin.quotas import AlterClientQuotasRequest, DescribeClientQuotasRequest
from kafka.protocol.admin.tokens import CreateDelegationTokenRequest
from kafka.protocol.admin.users import (
    AlterUserScramCredentialsRequest,
    DescribeUserScramCredentialsRequest,
)
from kafka.protocol.api import ApiKey
from kafka.testing import errors
from kafka.testing.calls import ANONYMOUS, Call
from kafka.testing.error_answers import items_with
from kafka.testing.guards.rules import (
    Answer,
    authorized_operations,
    change_response,
    guards,
    may_cluster,
    refused,
    tell,
    text_for,
)
from kafka.testing.security import acls

#: APIs that require a single operation on the cluster.
DEMANDS: Dict[int, int] = {
    request.api_key: operation
    for operation, requests in (
        (
            acls.ALTER,
            (
                AddRaftVoterRequest,
                AlterPartitionReassignmentsRequest,
                AlterReplicaLogDirsRequest,
                AlterUserScramCredentialsRequest,
                CreateAclsRequest,
                DeleteAclsRequest,
                ElectLeadersRequest,
                RemoveRaftVoterRequest,
                UnregisterBrokerRequest,
                UnregisterControllerRequest,
                UpdateFeaturesRequest,
            ),
        ),
        (
            acls.DESCRIBE,
            (
                DescribeAclsRequest,
                DescribeLogDirsRequest,
                DescribeQuorumRequest,
                DescribeUserScramCredentialsRequest,
                ListPartitionReassignmentsRequest,
            ),
        ),
        (acls.ALTER_CONFIGS, (AlterClientQuotasRequest,)),
        (acls.DESCRIBE_CONFIGS, (DescribeClientQuotasRequest, ListConfigResourcesRequest)),
    )
    for request in requests
    if request.api_key is not None
}


#: APIs with codes for the whole and for each item: the lists of items in request and response.
_BOTH: Dict[int, Tuple[str, str]] = {
    ApiKey.ELECT_LEADERS: ('topic_partitions', 'replica_election_results'),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: ('topics', 'responses'),
}


@guards(
    AddRaftVoterRequest,
    AlterClientQuotasRequest,
    AlterPartitionReassignmentsRequest,
    AlterReplicaLogDirsRequest,
    AlterUserScramCredentialsRequest,
    CreateAclsRequest,
    DeleteAclsRequest,
    DescribeAclsRequest,
    DescribeClientQuotasRequest,
    DescribeLogDirsRequest,
    DescribeQuorumRequest,
    DescribeUserScramCredentialsRequest,
    ElectLeadersRequest,
    ListConfigResourcesRequest,
    ListPartitionReassignmentsRequest,
    RemoveRaftVoterRequest,
    UnregisterBrokerRequest,
    UnregisterControllerRequest,
    UpdateFeaturesRequest,
)
def whole(call: Call[Any]) -> Answer:
    """Require one operation on the cluster."""
    if may_cluster(call, DEMANDS[call.header.api_key]):
        return None
    code = errors.CLUSTER_AUTHORIZATION_FAILED
    response: Any = refused(call, code)
    key = call.header.api_key
    if key == ApiKey.DESCRIBE_LOG_DIRS:
        response.results = []
    elif key == ApiKey.DESCRIBE_CLIENT_QUOTAS:
        response.entries = None
    elif key in _BOTH:
        asked, answered = _BOTH[key]
        if getattr(call.request, asked) is not None:
            items = items_with(call.request, call.version, key, answered, code)
            for item in items:
                tell(item, text_for(call))
            setattr(response, answered, items)
    return response


@guards(DescribeClusterRequest)
def describe_cluster(call: Call[DescribeClusterRequest]) -> None:
    """Return only the operations that the client may perform."""
    if call.request.include_cluster_authorized_operations:

        def change(response: Any) -> None:
            if response.error_code == errors.NONE:
                response.cluster_authorized_operations = cluster_operations(call)

        change_response(call, change)


def cluster_operations(call: Call[Any]) -> int:
    """Return the bits of allowed operations on the cluster, 0 without DESCRIBE."""
    if not may_cluster(call, acls.DESCRIBE):
        return 0
    return authorized_operations(call, acls.CLUSTER, acls.CLUSTER_NAME)


# ---------------------------------------------------------------- delegation tokens


@guards(CreateDelegationTokenRequest)
def create_token(call: Call[CreateDelegationTokenRequest]) -> Answer:
    """Require CREATE_TOKENS on the owner of a token if it is another user (KIP-373)."""
    request = call.request
    if not request.owner_principal_name or call.principal == ANONYMOUS:
        return None
    owner = '%s:%s' % (request.owner_principal_type, request.owner_principal_name)
    if owner == call.principal or call.may(acls.CREATE_TOKENS, acls.USER, owner):
        return None
    response: Any = refused(call, errors.DELEGATION_TOKEN_AUTHORIZATION_FAILED)
    response.principal_type = request.owner_principal_type or ''
    response.principal_name = request.owner_principal_name
    response.issue_timestamp_ms = response.expiry_timestamp_ms = response.max_timestamp_ms = -1
    if call.version >= 3:
        kind, _, name = call.principal.partition(':')
        response.token_requester_principal_type = kind
        response.token_requester_principal_name = name
    return response
