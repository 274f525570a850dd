"""The configs of groups: how often members of the consumer protocol send heartbeats, and how long they may be silent.

A group has them from the moment they are set, also before its first member comes, and keeps them when it is deleted,
as in Kafka. What is not set on a group is the broker's `group.consumer...` of that name; the broker's min and max
bound what may be set.
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
    to_the_end,
)
from tidelog.broker.coordination.groups import Pace
from tidelog.errors import InvalidInput
from tidelog.metadata.rows import ConfigRow
from tidelog.metadata.store import MetadataStore

SESSION, HEARTBEAT = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"

log = structlog.get_logger("tidelog.groups")


class GroupConfigs:
    """`apply` is told the pace of a group whenever it has another one; None: the usual one."""

    def __init__(
        self, metadata: MetadataStore, broker: BrokerConfig, apply: Callable[[str, Pace | None], None]
    ) -> None:
        self._metadata = metadata
        self._broker = broker
        self._apply = apply
        self._own: dict[str, dict[str, str]] = {}
        self._turn = asyncio.Lock()

    def load(self, rows: Iterable[ConfigRow]) -> None:
        """What was set in earlier runs, as far as it is still within the broker's bounds."""
        for row in rows:
            if row.kind == GROUP:
                keep_known(GROUP_CONFIGS, row, self._own.setdefault(row.resource, {}))
        for group, own in list(self._own.items()):
            try:
                self._apply(group, self._pace(own))
            except InvalidConfig as error:
                log.warning("stored configs of a group are ignored", group=group, reason=str(error))
                del self._own[group]

    def groups(self) -> list[str]:
        """Those that have configs of their own."""
        return sorted(self._own)

    def describe(self, group: str, names: Collection[str] | None = None) -> list[ConfigEntry]:
        """Of any group, also of one that is not there yet; those of `names` only, if any are given."""
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
        """In force when it returns."""
        _check_name(group)
        await to_the_end(self._alter(group, edit, validate_only))

    async def _alter(self, group: str, edit: Edit, validate_only: bool) -> None:
        async with self._turn:
            before = self._own.get(group, {})
            after = edited(GROUP_CONFIGS, GROUP, before, edit, lambda name: str(self._usual(name)))
            pace = self._pace(after)
            if validate_only:
                return
            await self._metadata.write(row_changes(GROUP, group, before, after))
            if after:
                self._own[group] = after
            else:
                self._own.pop(group, None)
            self._apply(group, pace)

    def _usual(self, name: str) -> int:
        return self._broker.number(f"group.{name}")

    def _pace(self, own: Mapping[str, str]) -> Pace | None:
        """What the configs of a group amount to, if they may be so."""
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
                f" the broker's {bound.format('min')} and {bound.format('max')} say so"
            )


def _check_name(group: str) -> None:
    if not group:
        raise InvalidInput("configs of a group need the group's name")
