"""The resources that have configs, with the type codes of Kafka's APIs, and changes of their configs."""

from tidelog.broker.configs import Edit, sets_something
from tidelog.errors import InvalidInput, TidelogError
from tidelog.gateways.kafka.connection import Request
from tidelog.gateways.kafka.context import broker_of, code_of

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32


async def altered(
    request: Request, kind: int, name: str, edit: Edit, *, validate_only: bool
) -> tuple[int, str | None]:
    """Error code and message of one change."""
    broker = broker_of(request)
    try:
        if kind == TOPIC:
            await broker.topics.alter_configs(name, edit, validate_only=validate_only)
        elif kind == BROKER:
            await broker.config.alter(broker.writes, name, edit, validate_only=validate_only)
        elif kind == GROUP:
            await broker.groups.configs.alter(name, edit, validate_only=validate_only)
        elif kind not in (BROKER_LOGGER, CLIENT_METRICS) or sets_something(edit):
            raise refused(kind)
    except TidelogError as error:
        return code_of(error), str(error)
    return 0, None


def refused(kind: int) -> InvalidInput:
    """The error for a resource type whose configs cannot be read or set."""
    if kind == CLIENT_METRICS:
        return InvalidInput(
            "client metrics are not supported: this broker accepts no telemetry from clients (PushTelemetry), so a "
            "subscription would have no effect; read the metrics from the clients themselves"
        )
    if kind == BROKER_LOGGER:
        return InvalidInput(
            "log levels cannot be changed while the broker runs: use the setting log-level and restart it"
        )
    return InvalidInput(
        f"configs of resource type {kind} are not supported; topics (2), brokers (4) and groups (32) are"
    )
