"""The errors of the group coordinator, one class per Kafka error code. All are subclasses of
`tidelog.errors.InvalidInput`:

    GroupError
    ├── OffsetMetadataTooLarge      12
    ├── CoordinatorLoading          14  retriable: the state of the group is being loaded
    ├── CoordinatorNotAvailable     15  retriable: the decision could not be stored
    ├── NotCoordinator              16  retriable: another broker owns the group now
    ├── IllegalGeneration           22
    ├── InconsistentGroupProtocol   23
    ├── InvalidGroupId              24
    ├── UnknownMemberId             25
    ├── InvalidSessionTimeout       26
    ├── RebalanceInProgress         27
    ├── InvalidCommitOffsetSize     28  the broker's limit of committed offsets is reached
    ├── UnsupportedVersion          35
    ├── InvalidRequest              42
    ├── NonEmptyGroup               68
    ├── GroupIdNotFound             69
    ├── MemberIdRequired            79
    ├── GroupMaxSizeReached         81
    ├── FencedInstanceId            82
    ├── GroupSubscribedToTopic      86
    ├── UnstableOffsetCommit        88  retriable
    ├── FencedMemberEpoch          110
    ├── UnreleasedInstanceId       111
    ├── UnsupportedAssignor        112
    ├── StaleMemberEpoch           113
    └── InvalidRegularExpression   128
    UnknownTopicOrPartition          3  retriable
    UnknownTopicId                 100  retriable

Inside the package they are raised; replies carry them as `error_code`.
"""

from tidelog.errors import InvalidInput

NO_ERROR = 0


class GroupError(InvalidInput):
    pass


class OffsetMetadataTooLarge(GroupError):
    kafka_code = 12


class CoordinatorLoading(GroupError):
    kafka_code = 14
    retriable = True


class CoordinatorNotAvailable(GroupError):
    kafka_code = 15
    retriable = True


class NotCoordinator(GroupError):
    kafka_code = 16
    retriable = True


class IllegalGeneration(GroupError):
    kafka_code = 22


class InconsistentGroupProtocol(GroupError):
    kafka_code = 23


class InvalidGroupId(GroupError):
    kafka_code = 24


class UnknownMemberId(GroupError):
    kafka_code = 25


class InvalidSessionTimeout(GroupError):
    kafka_code = 26


class RebalanceInProgress(GroupError):
    kafka_code = 27


class InvalidCommitOffsetSize(GroupError):
    kafka_code = 28


class UnsupportedVersion(GroupError):
    kafka_code = 35


class InvalidRequest(GroupError):
    kafka_code = 42


class NonEmptyGroup(GroupError):
    kafka_code = 68


class GroupIdNotFound(GroupError):
    kafka_code = 69


class MemberIdRequired(GroupError):
    kafka_code = 79


class GroupMaxSizeReached(GroupError):
    kafka_code = 81


class FencedInstanceId(GroupError):
    kafka_code = 82


class GroupSubscribedToTopic(GroupError):
    kafka_code = 86


class UnstableOffsetCommit(GroupError):
    kafka_code = 88
    retriable = True


class FencedMemberEpoch(GroupError):
    kafka_code = 110


class UnreleasedInstanceId(GroupError):
    kafka_code = 111


class UnsupportedAssignor(GroupError):
    kafka_code = 112


class StaleMemberEpoch(GroupError):
    kafka_code = 113


class InvalidRegularExpression(GroupError):
    kafka_code = 128


class UnknownTopicOrPartition(InvalidInput):
    kafka_code = 3
    retriable = True


class UnknownTopicId(InvalidInput):
    kafka_code = 100
    retriable = True
