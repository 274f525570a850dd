"""`Member`: this broker as a member of a cluster.

Two tasks. One keeps the broker up: it registers, beats every second, and when the version that a beat returns is new
it reads what changed. The other acts when the broker is the controller, or there is none: it stands for controller,
buries the dead, and assigns what must move, one step at a time. It may be slow; the beats go on meanwhile.

Nothing that goes wrong ends the tasks. While the database cannot be reached, `ClusterOwnership` stops to answer by
itself; a broker that was declared dead registers as a new incarnation. After a step whose outcome is unknown the next
one is decided from what the database says then.
"""

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias

import structlog

from tidelog.broker.membership.assignment import Step, Thing, next_step
from tidelog.broker.membership.ownership import ClusterOwnership, OwnershipListener, leaders_of, steady_clock
from tidelog.broker.membership.pulse import Pulse, Timing
from tidelog.errors import Fenced, InvalidInput
from tidelog.metadata.registry import CONTROLLER, Beat, Membership, Registry, UnknownBroker
from tidelog.metadata.store import Fence
from tidelog.storage.trouble import Trouble

_LOOK_EVERY_S = 0.1  # whether everything has been handed over
_LEAVE_ATTEMPTS = 3
_IN_A_THREAD = 10_000  # partitions; what is done with more takes tens of milliseconds

log = structlog.get_logger("tidelog.membership")

Wait: TypeAlias = Callable[[asyncio.Event, float], Awaitable[None]]
"""Returns when the event is set, or after so many seconds."""


async def wait_for(event: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        pass


class Member:
    """Belongs to the running event loop."""

    def __init__(
        self,
        registry: Registry,
        ownership: ClusterOwnership,
        *,
        rack: str | None = None,
        timing: Timing | None = None,
        clock: Callable[[], float] = steady_clock,
        wait: Wait = wait_for,
        new_incarnation: Callable[[], str] = lambda: uuid.uuid4().hex,
    ) -> None:
        self.ownership = ownership
        self._registry = registry
        self._timing = (timing or Timing()).checked()
        self._pulse = Pulse(self._timing)
        self._clock = clock
        self._wait = wait
        self._new_incarnation = new_incarnation
        self._me = Membership(ownership.node_id, "", {}, rack)
        self._begin_incarnation()
        self._is_registered = False
        self._is_stopping = False
        self._was_fenced = False
        self._retry_at = float("-inf")  # not registered again before
        self._last: Beat | None = None
        self._listeners: list[OwnershipListener] = []
        self._wishes: dict[Thing, int] = {}
        self._decided_at: tuple[object, ...] | None = None  # what was known when nothing was left to assign
        self._following = asyncio.Lock()
        self._look = asyncio.Event()  # beat now
        self._act = asyncio.Event()  # there has been a beat
        self._never = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self.on_assigned: Callable[[set[int]], None] = lambda _: None
        """As the controller: other brokers have got something to own, which they learn at their next beat or when
        they are told to look."""
        ownership.on_advertise = self.hurry

    def listen(self, listener: OwnershipListener) -> None:
        """Call this before `start`. Listeners are called in the order in which they were added."""
        self._listeners.append(listener)

    def start(self) -> None:
        """Returns at once, even if the database is down: the broker is a member as soon as it can be reached."""
        self._tasks = [
            asyncio.create_task(self._keep_up(), name="membership"),
            asyncio.create_task(self._govern(), name="controller"),
        ]

    def hurry(self) -> None:
        """Beat now, and look at what changed: for example because topics were created."""
        self._look.set()

    async def look(self) -> None:
        """Learn what changed, without waiting for the next beat."""
        await self._follow()

    @property
    def controller_fence(self) -> Fence | None:
        """The controller's right to write, while this broker is the controller."""
        return self.ownership.fence(CONTROLLER)

    def move(self, things: Mapping[Thing, int]) -> None:
        """Move leases or partitions to brokers, all or none, and keep them there until the broker goes down, the
        topic is deleted, or another broker becomes the controller. Only the controller can do it: raises
        NotController."""
        self.ownership.check_controller()
        for broker_id in set(things.values()):
            if broker_id not in self.ownership.members:
                raise UnknownBroker(f"broker {broker_id} is not up")
            if broker_id in self.ownership.drained:
                raise InvalidInput(f"broker {broker_id} is drained: take that back first")
        self._wishes.update(things)
        self.hurry()

    async def drain(self, broker_id: int, is_drained: bool) -> None:
        """Let a broker give everything away and get nothing new, or take that back. Raises UnknownBroker,
        NoOtherBroker."""
        await self._registry.set_drained(broker_id, is_drained)
        self.hurry()

    async def stop(self, within_s: float) -> None:
        """Leave the cluster in order: hand everything over to others, for which this waits at most so long."""
        deadline = self._clock() + within_s
        self._is_stopping = True
        self._me = self._me._replace(is_draining=True)
        trouble = Trouble(log, bad="the broker cannot hand over what it owns", good="the broker hands over")
        is_draining = False
        while self.ownership.is_trusted and self._has_to_give() and self._clock() < deadline:
            try:
                if not is_draining:
                    await self._registry.drain(self._me.broker_id, True)
                    is_draining = True
                self.hurry()
            except Exception as error:
                trouble.failed(self, error)
            await self._wait(self._never, _LOOK_EVERY_S)
        left = self.ownership.mine
        if self._has_to_give():
            log.warning("the broker leaves before everything was handed over", partitions=len(left.partitions))
        await self._end_tasks()
        self.ownership.distrust()
        for attempt in range(_LEAVE_ATTEMPTS if self._is_registered else 0):
            try:
                await self._registry.leave(self._me)
                return
            except Exception as error:
                if attempt == _LEAVE_ATTEMPTS - 1:
                    log.warning("the broker could not sign off; it will be presumed dead", reason=str(error))

    async def close(self) -> None:
        """End without leaving, as a crash does."""
        await self._end_tasks()
        self.ownership.distrust()

    async def _end_tasks(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks = []

    def _has_to_give(self) -> bool:
        return not self.ownership.mine.is_empty and bool(self.ownership.able() - {self._me.broker_id})

    # Staying up

    async def _keep_up(self) -> None:
        trouble = Trouble(
            log, bad="the broker has no contact with the cluster", good="the broker is in contact with the cluster"
        )
        while True:
            self._look.clear()
            began = self._clock()
            try:
                await self._beat()
                trouble.worked(self)
            except Exception as error:  # whatever it is, it is tried again
                trouble.failed(self, error)
            pause_s = began + self._timing.beat_every - self._clock()
            await self._wait(self._look, max(pause_s, self._timing.beat_every / 10))

    async def _beat(self) -> None:
        if not await self._register():
            return
        sent = self._clock()
        try:
            beat = await self._registry.beat(self._me)
        except Fenced:
            self.ownership.distrust()
            self._is_registered, self._was_fenced = False, True
            self._begin_incarnation()
            self.hurry()
            raise
        self._pulse.beat(sent, self._clock(), beat)
        self._last = beat
        if beat.version == self.ownership.known_version:
            self.ownership.trust(self._pulse.trusted_until(sent))
        else:
            await self._follow(self._pulse.trusted_until(sent))
        self._act.set()

    def _begin_incarnation(self) -> None:
        self.ownership.incarnation = self._new_incarnation()
        self._me = self._me._replace(incarnation=self.ownership.incarnation)

    async def _register(self) -> bool:
        """True if the broker is registered with its newest address."""
        if self._is_registered and self._me.addresses == self.ownership.addresses:
            return True
        if self._was_fenced:
            await self._follow()
            twin = self.ownership.members.get(self._me.broker_id)
            if twin is not None and twin.incarnation != self._me.incarnation:
                if self._retry_at == float("-inf"):
                    log.error(
                        "another process has registered with this broker's id; is it running twice?",
                        broker_id=self._me.broker_id,
                    )
                    self._retry_at = self._clock() + self._timing.dead_after
                if self._clock() < self._retry_at:
                    return False
        self._me = self._me._replace(addresses=dict(self.ownership.addresses))
        await self._registry.register(self._me)
        self._retry_at = float("-inf")
        self._is_registered, self._was_fenced = True, False
        self._pulse.register()
        return True

    async def _follow(self, trusted_until: float | None = None) -> None:
        async with self._following:  # else an older answer might be applied after a newer one
            changes = await self._registry.changes_since(self.ownership.known_version)
            many = len(changes.leaderships) > _IN_A_THREAD
            leaders = await asyncio.to_thread(leaders_of, changes) if many else None
            lost, gained = self.ownership.apply(changes, leaders)
            if changes.deleted and self._wishes:
                gone = set(changes.deleted)
                self._wishes = {thing: broker for thing, broker in self._wishes.items() if thing[0] not in gone}
            if trusted_until is not None:
                self.ownership.trust(trusted_until)
            if not lost.is_empty:
                for listener in self._listeners:
                    _tell(listener.lost, lost)
            if not gained.is_empty:
                for listener in self._listeners:
                    _tell(listener.gained, gained)

    # The controller

    async def _govern(self) -> None:
        trouble = Trouble(log, bad="the controller cannot do its work", good="the controller works again")
        while True:
            await self._act.wait()
            self._act.clear()
            try:
                fence = self.controller_fence
                if fence is not None:
                    await self._control(fence)
                else:
                    self._wishes.clear()
                    self._decided_at = None
                    await self._stand()
                trouble.worked(self)
            except Fenced:
                self.hurry()  # another broker is the controller
            except Exception as error:
                trouble.failed(self, error)

    async def _stand(self) -> None:
        beat, me = self._last, self._me
        if beat is None or beat.has_controller or me.is_draining or not me.addresses or not self._is_registered:
            return
        if me.broker_id in self.ownership.drained:
            return
        if await self._registry.stand_for_controller(me) is not None:
            log.info("the broker is the controller", broker_id=me.broker_id)
            self.hurry()

    async def _control(self, fence: Fence) -> None:
        if self._pulse.may_bury(self._clock()):
            buried = await self._registry.bury(fence)
            if buried:
                log.warning("brokers are presumed dead", brokers=buried)
                await self._follow()
        is_urgent = True
        while is_urgent and self.controller_fence == fence:
            self._wishes = {
                thing: broker
                for thing, broker in self._wishes.items()
                if broker in self.ownership.members and broker not in self.ownership.drained
            }
            now_known = (self.ownership.known_version, fence, tuple(self._wishes.items()))
            if now_known == self._decided_at:
                return
            step = await self._next_step()
            if step.is_empty:
                self._decided_at = now_known
                return
            await self._registry.assign(fence, step.leases, step.leaders)
            log.info("the controller assigned", leases=len(step.leases), partitions=len(step.leaders))
            self.on_assigned(step.owners - {self._me.broker_id})
            await self._follow()
            is_urgent = step.is_urgent

    async def _next_step(self) -> Step:
        known = self.ownership.known(self._wishes)
        if len(known.leaders) > _IN_A_THREAD:
            return await asyncio.to_thread(next_step, known)
        return next_step(known)


def _tell(call: Callable[..., None], things: object) -> None:
    try:
        call(things)
    except Exception:
        log.exception("a listener failed when the ownership changed")
