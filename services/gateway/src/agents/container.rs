//! Calls of agents that connect to the streams of a container.

use setpoint_proto::ApiError;
use setpoint_proto::setpoint::container_input::Input;
use setpoint_proto::setpoint::container_output::Output;
use setpoint_proto::setpoint::node_client::NodeClient;
use setpoint_proto::setpoint::{ContainerInput, ContainerOutput, OpenContainer};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Streaming;
use tonic::transport::Channel;

use super::{QUEUE, answer, unexpected};

/// The call of the agent: a command is run, or streams are attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    /// It runs a command.
    Exec,
    /// It connects to the container's own process.
    Attach,
}

/// An open call. Dropping it ends the command.
#[derive(Debug)]
pub(crate) struct ContainerCall {
    pub input: mpsc::Sender<ContainerInput>,
    pub output: Streaming<ContainerOutput>,
}

impl ContainerCall {
    /// Connects to the streams of a container.
    ///
    /// # Errors
    /// The error of the agent: nothing has been started then.
    pub(crate) async fn open(
        agent: Channel,
        verb: Verb,
        open: OpenContainer,
    ) -> Result<Self, ApiError> {
        let (input, requests) = mpsc::channel(QUEUE);
        let open = ContainerInput {
            input: Some(Input::Open(open)),
        };
        let sent = input.try_send(open);
        sent.map_err(|_| unexpected("the call of the node's agent has ended"))?;
        let requests = ReceiverStream::new(requests);
        let mut agent = NodeClient::new(agent);
        let response = match verb {
            Verb::Exec => answer(agent.exec(requests)).await,
            Verb::Attach => answer(agent.attach(requests)).await,
        };
        let mut output = response?.into_inner();
        match answer(output.message())
            .await?
            .and_then(|first| first.output)
        {
            Some(Output::Opened(_)) => Ok(Self { input, output }),
            _ => Err(unexpected("the node's agent did not open the streams")),
        }
    }
}
