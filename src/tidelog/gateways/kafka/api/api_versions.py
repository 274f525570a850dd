"""ApiVersions (18), v0 to v4: what this broker offers.

A version that we do not know is answered at v0 with UNSUPPORTED_VERSION and the ranges, so that a newer client can
step down. The finalized feature transaction.version 2 tells clients that they may use transactions of version 2
(KIP-890). Produce is advertised from 0, because older librdkafka takes a higher minimum for "no Produce at all";
versions below its real minimum are refused like any other.
"""

from tidelog.gateways.kafka.connection import Request
from tidelog.gateways.kafka.server import OFFERED
from tidelog.wire.generated.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)

_PRODUCE = 0
_TRANSACTIONS, _TRANSACTIONS_VERSION = "transaction.version", 2
_RANGES = [ApiVersion(api.key, 0 if api.key == _PRODUCE else api.min_version, api.max_version) for api in OFFERED]


def versions_response(error_code: int = 0) -> ApiVersionsResponse:
    return ApiVersionsResponse(
        error_code=error_code,
        api_keys=_RANGES,
        supported_features=[SupportedFeatureKey(_TRANSACTIONS, 0, _TRANSACTIONS_VERSION)],
        finalized_features_epoch=0,
        finalized_features=[FinalizedFeatureKey(_TRANSACTIONS, _TRANSACTIONS_VERSION, _TRANSACTIONS_VERSION)],
    )


def handle(_request: Request, _message: ApiVersionsRequest) -> ApiVersionsResponse:
    return versions_response()
