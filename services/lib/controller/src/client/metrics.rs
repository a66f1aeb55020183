//! Metrics that the gateway reads from Prometheus.

use setpoint_model::Verb;
use setpoint_proto::ApiError;
use setpoint_proto::custom_metrics::MetricValueList;
use setpoint_proto::external_metrics::ExternalMetricValueList;
use setpoint_proto::setpoint::metrics_client::MetricsClient;
use setpoint_proto::setpoint::{CustomMetricRequest, ExternalMetricRequest};

use super::{Client, MAX_ANSWER};

impl Client {
    /// Returns the values of a metric of objects.
    ///
    /// # Errors
    /// `NotFound` if there is no such metric, or the gateway has no metrics of objects; `InternalError` if it cannot be
    /// read; `ServiceUnavailable` or `Timeout` without a response.
    pub async fn custom_metric(
        &self,
        request: CustomMetricRequest,
    ) -> Result<MetricValueList, ApiError> {
        let mut metrics = self.metrics();
        let send = |_, request| async move { metrics.custom(request).await };
        self.call(Verb::Get, request, send).await
    }

    /// Returns the values of a metric of no object.
    ///
    /// # Errors
    /// As [`Self::custom_metric`].
    pub async fn external_metric(
        &self,
        request: ExternalMetricRequest,
    ) -> Result<ExternalMetricValueList, ApiError> {
        let mut metrics = self.metrics();
        let send = |_, request| async move { metrics.external(request).await };
        self.call(Verb::Get, request, send).await
    }

    fn metrics(&self) -> MetricsClient<tonic::transport::Channel> {
        MetricsClient::new(self.channel()).max_decoding_message_size(MAX_ANSWER)
    }
}
