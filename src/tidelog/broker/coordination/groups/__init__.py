"""Consumer groups: membership by the classic and the consumer protocol, and committed offsets.

`GroupCoordinator` is the entry point; `messages` has its requests and replies.
"""

from tidelog.broker.coordination.groups.config import GroupConfig
from tidelog.broker.coordination.groups.coordinator import GroupCoordinator, Outcome
from tidelog.broker.coordination.groups.environment import Pace, Token, Topic, TopicCatalog

__all__ = ["GroupConfig", "GroupCoordinator", "Outcome", "Pace", "Token", "Topic", "TopicCatalog"]
