//! Calls of agents that forward a connection to a port of a Pod.

use bytes::Bytes;
use setpoint_proto::ApiError;
use setpoint_proto::setpoint::node_client::NodeClient;
use setpoint_proto::setpoint::port_forward_input::Input;
use setpoint_proto::setpoint::port_forward_output::Output;
use setpoint_proto::setpoint::{HalfClose, OpenPort, PortForwardInput, PortForwardOutput};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Streaming;
use tonic::transport::Channel;

use super::{QUEUE, answer, unexpected};

/// An open connection to a port. Dropping it closes the connection.
#[derive(Debug)]
pub(crate) struct PortCall {
    input: mpsc::Sender<PortForwardInput>,
    output: Streaming<PortForwardOutput>,
}

impl PortCall {
    /// Connects to a port.
    ///
    /// # Errors
    /// The error of the agent: there is no connection then.
    pub(crate) async fn open(agent: Channel, open: OpenPort) -> Result<Self, ApiError> {
        let (input, requests) = mpsc::channel(QUEUE);
        let sent = input.try_send(message(Input::Open(open)));
        sent.map_err(|_| unexpected("the call of the node's agent has ended"))?;
        let mut agent = NodeClient::new(agent);
        let response = answer(agent.port_forward(ReceiverStream::new(requests))).await;
        let mut output = response?.into_inner();
        match answer(output.message())
            .await?
            .and_then(|first| first.output)
        {
            Some(Output::Opened(_)) => Ok(Self { input, output }),
            _ => Err(unexpected("the node's agent did not open the connection")),
        }
    }
}

/// The bytes that a client sends on a connection.
pub(crate) trait Source {
    /// Returns the next bytes; `None` at the end.
    fn next(&mut self) -> impl Future<Output = Result<Option<Bytes>, String>> + Send;
}

/// Takes the bytes that a client receives on a connection.
pub(crate) trait Sink {
    /// Sends bytes.
    fn send(&mut self, data: Bytes) -> impl Future<Output = Result<(), String>> + Send;
    /// Ends this direction.
    fn end(&mut self) -> impl Future<Output = ()> + Send;
}

/// Copies what both ends send, until both have ended or one breaks.
///
/// # Errors
/// If one breaks.
pub(crate) async fn forward(
    call: PortCall,
    source: &mut impl Source,
    sink: &mut impl Sink,
) -> Result<(), String> {
    let PortCall { input, mut output } = call;
    let upload = async {
        loop {
            let next = tokio::select! {
                next = source.next() => next?,
                // The agent has ended the call.
                () = input.closed() => return Ok(()),
            };
            let is_end = next.is_none();
            let next = next.map_or(Input::End(HalfClose {}), Input::Data);
            // If the agent no longer reads, its responses say why.
            if input.send(message(next)).await.is_err() || is_end {
                return Ok(());
            }
        }
    };
    let download = async {
        let mut is_open = true;
        let broken = |status: tonic::Status| status.message().to_owned();
        while let Some(next) = output.message().await.map_err(broken)? {
            match next.output {
                Some(Output::Data(data)) => sink.send(data).await?,
                Some(Output::End(_)) if is_open => {
                    sink.end().await;
                    is_open = false;
                }
                _ => {}
            }
        }
        if is_open {
            sink.end().await;
        }
        Ok::<_, String>(())
    };
    tokio::try_join!(upload, download).map(|_| ())
}

fn message(input: Input) -> PortForwardInput {
    PortForwardInput { input: Some(input) }
}
