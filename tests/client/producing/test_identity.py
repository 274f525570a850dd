"""Producer ids are asked for, and sequence numbers go round."""

import pytest

from tests.client.fake_broker import FakeCluster, against_a_fake, refuse
from tidelog.client import AsyncClient, BrokerError
from tidelog.client.producing.identity import new_identity, sequence_after
from tidelog.wire.error_codes import ErrorCode


@pytest.mark.parametrize(
    ("base", "records", "following"),
    [(0, 1, 1), (5, 10, 15), (0x7FFF_FFFF, 1, 0), (0x7FFF_FFFE, 5, 3)],
)
def test_the_sequence_begins_at_0_again_after_the_highest_number(base: int, records: int, following: int) -> None:
    assert sequence_after(base, records) == following


@against_a_fake()
async def test_every_identity_is_new_and_an_error_is_not_tried_again(
    cluster: FakeCluster, client: AsyncClient
) -> None:
    assert (await new_identity(client.cluster)).producer_id != (await new_identity(client.cluster)).producer_id
    cluster.fail("InitProducerId", refuse(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS))
    with pytest.raises(BrokerError, match="asking for a producer id"):
        await new_identity(client.cluster)
    assert len(cluster.asked("InitProducerId")) == 3
