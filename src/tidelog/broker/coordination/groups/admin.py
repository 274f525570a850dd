"""Listing and describing groups, for operators."""

from collections.abc import Mapping
from typing import TypeAlias

from tidelog.broker.coordination.groups.classic import ClassicGroup
from tidelog.broker.coordination.groups.consumer import ConsumerGroup
from tidelog.broker.coordination.groups.errors import GroupIdNotFound
from tidelog.broker.coordination.groups.messages import (
    DescribedClassicGroup,
    DescribedConsumerGroup,
    ListedGroup,
    ListGroups,
)

Group: TypeAlias = ClassicGroup | ConsumerGroup


def list_groups(groups: Mapping[str, Group], request: ListGroups) -> tuple[ListedGroup, ...]:
    states = {state.lower() for state in request.states_filter}
    kinds = {kind.lower() for kind in request.types_filter}
    return tuple(
        ListedGroup(group_id, group.protocol_type, group.state, group.kind.capitalize())
        for group_id, group in groups.items()
        if (not states or group.state.lower() in states) and (not kinds or group.kind in kinds)
    )


def describe_classic(group_id: str, group: Group | None) -> DescribedClassicGroup:
    if isinstance(group, ClassicGroup):
        return group.describe()
    reason = f"Group {group_id} not found." if group is None else f"Group {group_id} is not a classic group."
    return DescribedClassicGroup(group_id, "Dead", error_code=GroupIdNotFound.kafka_code, error_message=reason)


def describe_consumer(group_id: str, group: Group | None) -> DescribedConsumerGroup:
    if isinstance(group, ConsumerGroup):
        return group.describe()
    reason = f"Group {group_id} not found." if group is None else f"Group {group_id} is not a consumer group."
    return DescribedConsumerGroup(group_id, error_code=GroupIdNotFound.kafka_code, error_message=reason)
