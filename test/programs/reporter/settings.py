"""Settings of the reports."""


class Settings(object):
    def __init__(self, brokers, topic, async='yes'):
        self.brokers = brokers
        self.topic = topic
        self.async = async == 'yes'
