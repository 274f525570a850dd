"""The configs of groups: heartbeat interval and session timeout of members of the consumer protocol.

As in Kafka, they can be set before the group has its first member, and they remain when the group is deleted. A
config that is not set on a group has the value of the broker's `group.consumer...` config of that name. The broker's
min and max limit what may be set.
"""

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping

import structlog

from tidelog.broker.config_table import GROUP_CONFIGS, InvalidConfig
from tidelog.broker.configs import (
    GROUP,
    BrokerConfig,
    ConfigEntry,
    ConfigSource,
    ConfigSynonym,
    Edit,
    config_entry,
    edited,
    keep_known,
    row_changes,
)
from tidelog.broker.coordination.groups import Pace
from tidelog.broker.shell import to_the_end
from tidelog.broker.writes import Writes
from tidelog.errors import InvalidInput
from tidelog.metadata.rows import ConfigRow

SESSION, HEARTBEAT = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"

log = structlog.get_logger("tidelog.groups")


class GroupConfigs:
    """`apply` is called with a group and its pace whenever the pace changes; None is the broker's default pace."""

    def __init__(self, writes: Writes, broker: BrokerConfig, apply: Callable[[str, Pace | None], None]) -> None:
        self.writes = writes
        """Those of the owner of topics and configs."""
        self._broker = broker
        self._tell = apply
        self._own: dict[str, dict[str, str]] = {}
        self.paces: dict[str, Pace] = {}
        """Of the groups that have configs of their own."""
        self._turn = asyncio.Lock()

    def load(self, rows: Iterable[ConfigRow]) -> None:
        """Load what was set in earlier runs. Values that are no longer within the broker's bounds are ignored."""
        for row in rows:
            if row.kind == GROUP:
                keep_known(GROUP_CONFIGS, row, self._own.setdefault(row.resource, {}))
        for group, own in list(self._own.items()):
            try:
                self._apply(group, self._pace(own))
            except InvalidConfig as error:
                log.warning("the stored configs of a group are invalid and ignored", group=group, reason=str(error))
                del self._own[group]

    def reload(self, rows: Iterable[ConfigRow]) -> None:
        """Replace everything by what another broker has stored."""
        before, self._own = self._own, {}
        self.load(rows)
        for group in before.keys() - self._own.keys():
            self._apply(group, None)

    def _apply(self, group: str, pace: Pace | None) -> None:
        if pace is None:
            self.paces.pop(group, None)
        else:
            self.paces[group] = pace
        self._tell(group, pace)

    def groups(self) -> list[str]:
        """The groups that have configs of their own."""
        return sorted(self._own)

    def describe(self, group: str, names: Collection[str] | None = None) -> list[ConfigEntry]:
        """The configs of a group, which need not exist; only those in `names`, if it is given."""
        _check_name(group)
        own = self._own.get(group, {})
        entries = []
        for definition in GROUP_CONFIGS.values():
            if names and definition.name not in names:
                continue
            synonyms = self._broker.found(name for name, _ in definition.synonyms)
            if definition.name in own:
                synonyms.insert(0, ConfigSynonym(definition.name, own[definition.name], ConfigSource.GROUP))
            entries.append(config_entry(definition, synonyms, None))
        return entries

    async def alter(self, group: str, edit: Edit, *, validate_only: bool = False) -> None:
        """The change is in force when this returns."""
        _check_name(group)
        await to_the_end(self._alter(group, edit, validate_only))

    async def _alter(self, group: str, edit: Edit, validate_only: bool) -> None:
        async with self._turn:
            before = self._own.get(group, {})
            if not before and len(self._own) >= self._broker.number("tidelog.max.groups"):
                raise InvalidConfig(f"{len(self._own)} groups have configs, which is the most (tidelog.max.groups)")
            after = edited(GROUP_CONFIGS, GROUP, before, edit, lambda name: str(self._usual(name)))
            pace = self._pace(after)
            if validate_only:
                return
            await self.writes.decided(row_changes(GROUP, group, before, after))
            if after:
                self._own[group] = after
            else:
                self._own.pop(group, None)
            self._apply(group, pace)

    def _usual(self, name: str) -> int:
        return self._broker.number(f"group.{name}")

    def _pace(self, own: Mapping[str, str]) -> Pace | None:
        """The pace that these configs result in. Raises InvalidConfig if they are out of bounds."""
        if not own:
            return None
        for name, text in own.items():
            self._check_bounds(name, int(text))
        pace = Pace(*(int(own[name]) if name in own else self._usual(name) for name in (SESSION, HEARTBEAT)))
        if pace.session_timeout_ms <= pace.heartbeat_interval_ms:
            raise InvalidConfig(
                f"{SESSION} ({pace.session_timeout_ms}) must be above {HEARTBEAT} ({pace.heartbeat_interval_ms})"
            )
        return pace

    def _check_bounds(self, name: str, value: int) -> None:
        bound = name.replace("consumer.", "group.consumer.{}.", 1)
        least, most = (self._broker.number(bound.format(which)) for which in ("min", "max"))
        usual = self._usual(name)
        if not min(least, usual) <= value <= max(most, usual):
            raise InvalidConfig(
                f"{name} must be from {min(least, usual)} to {max(most, usual)}, not {value};"
                f" see the broker's {bound.format('min')} and {bound.format('max')}"
            )


def _check_name(group: str) -> None:
    if not group:
        raise InvalidInput("the name of the group is missing")
