"""DescribeDecision (10003, Tidelog's own), v0: the highest number of a scope that DecideTransactions has decided."""

from collections.abc import Awaitable

from tidelog.broker.coordination.transactions import messages as m
from tidelog.gateways.kafka.connection import Request
from tidelog.gateways.kafka.coordinator_requests import ask_transactions
from tidelog.wire.generated.describe_decision import DescribeDecisionRequest, DescribeDecisionResponse


def handle(
    request: Request, message: DescribeDecisionRequest
) -> DescribeDecisionResponse | Awaitable[DescribeDecisionResponse]:
    def translate(reply: m.DescribeDecisionReply) -> DescribeDecisionResponse:
        return DescribeDecisionResponse(error_code=reply.error_code, number=reply.number)

    return ask_transactions(request, m.DescribeDecision(message.scope), translate)
