"""Makes sure that a prefix of an object store belongs to one cluster.

A cluster removes objects that its database does not know. Two clusters with one prefix, or a cluster beside a copy of
its database under another id, would remove each other's data. So the first broker of a cluster leaves the cluster's
id in the store, and every broker looks at it before it does anything else.
"""

from tidelog.errors import InvalidInput, StorageError, StorageUnavailable
from tidelog.storage.shared.objects import ObjectMissing, ObjectStore

KEY = "cluster-id"
_LONGEST = 256


class ClaimedByAnother(StorageError):
    """The prefix belongs to another cluster: an operator has to choose another one."""

    retriable = False


async def claim(objects: ObjectStore, cluster_id: str) -> None:
    """Raises ClaimedByAnother, or StorageUnavailable while the store cannot be reached."""
    if not [stored async for stored in objects.list(KEY) if stored.key == KEY]:
        try:
            await objects.put(KEY, [cluster_id.encode()])
        except StorageUnavailable:
            pass  # another broker was faster, or nothing works: reading it tells
    await check_claim(objects, cluster_id)


async def need_claim(objects: ObjectStore, cluster_id: str) -> None:
    """As `check_claim`, for tools: InvalidInput if nobody has claimed it."""
    try:
        await check_claim(objects, cluster_id)
    except ObjectMissing:
        raise InvalidInput(
            f"{objects.place} has never been used by a cluster; check cluster.storage, and whether it is mounted"
        ) from None


async def check_claim(objects: ObjectStore, cluster_id: str) -> None:
    """As `claim`, but changes nothing. ObjectMissing: nobody has claimed it."""
    found = await objects.read_up_to(KEY, 0, _LONGEST)
    owner = bytes(found).decode(errors="replace")
    if owner != cluster_id:
        raise ClaimedByAnother(
            f"{objects.place} belongs to the cluster {owner!r}, and the database to the cluster {cluster_id!r}: "
            "choose another prefix for cluster.storage, or the database that belongs to it"
        )
