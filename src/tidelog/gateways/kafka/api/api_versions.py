"""ApiVersions (18), v0 to v4: the APIs of this broker and their versions. From v3 on the client names its software.

An unknown version is answered at v0 with UNSUPPORTED_VERSION and the ranges, so that a newer client can fall back to
a lower one. Features (`features`) with a finalized level tell clients what they may use, such as transactions of
version 2. Below v4, features whose lowest level is 0 are left out of the supported features: Java clients before 3.8
fail on them (KAFKA-17011). Produce is advertised from v0, because older versions of librdkafka take a higher minimum
as "no Produce at all"; versions below its real minimum are refused like any other.
"""

from tidelog.gateways.kafka.api_table import OFFERED
from tidelog.gateways.kafka.connection import Request
from tidelog.gateways.kafka.features import FEATURES
from tidelog.wire.generated.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)

_PRODUCE = 0
_INTRODUCES_FROM = 3
_RANGES = [ApiVersion(api.key, 0 if api.key == _PRODUCE else api.min_version, api.max_version) for api in OFFERED]


_SUPPORTED = [SupportedFeatureKey(name, each.lowest, each.highest) for name, each in FEATURES.items()]
_READABLE_BY_ALL = [feature for feature in _SUPPORTED if feature.min_version > 0]
_FINALIZED = [FinalizedFeatureKey(name, each.level, each.level) for name, each in FEATURES.items() if each.level]


def versions_response(version: int, error_code: int = 0) -> ApiVersionsResponse:
    return ApiVersionsResponse(
        error_code=error_code,
        api_keys=_RANGES,
        supported_features=_SUPPORTED if version >= 4 else _READABLE_BY_ALL,
        finalized_features_epoch=0,
        finalized_features=_FINALIZED,
    )


def handle(request: Request, message: ApiVersionsRequest) -> ApiVersionsResponse:
    if request.version >= _INTRODUCES_FROM:
        request.session.introduce(message.client_software_name, message.client_software_version)
    return versions_response(request.version)
