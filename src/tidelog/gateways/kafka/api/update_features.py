"""UpdateFeatures (57), v0 to v2: the levels of features are fixed. A request for the level in force succeeds; any
other is refused."""

from tidelog.gateways.kafka.connection import Request
from tidelog.gateways.kafka.features import FEATURES
from tidelog.wire.error_codes import ErrorCode
from tidelog.wire.generated.update_features import (
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)


def handle(request: Request, message: UpdateFeaturesRequest) -> UpdateFeaturesResponse:
    problems = {
        update.feature: problem
        for update in message.feature_updates
        if (problem := _problem(update.feature, update.max_version_level)) is not None
    }
    if request.version >= 2:
        if not problems:
            return UpdateFeaturesResponse(error_message=None)
        return UpdateFeaturesResponse(
            error_code=ErrorCode.INVALID_UPDATE_VERSION, error_message="; ".join(problems.values())
        )
    return UpdateFeaturesResponse(
        error_message=None,
        results=[
            UpdatableFeatureResult(name, ErrorCode.INVALID_UPDATE_VERSION if problem else 0, problem)
            for name, problem in ((each.feature, problems.get(each.feature)) for each in message.feature_updates)
        ],
    )


def _problem(name: str, level: int) -> str | None:
    feature = FEATURES.get(name)
    if feature is None:
        return f"unknown feature {name}"
    return None if level == feature.level else f"{name} is at level {feature.level}, which cannot be changed"
