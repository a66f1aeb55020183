//! Channels within a WebSocket: the first byte of each message is the number of its channel.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::{BufMut as _, Bytes, BytesMut};
use tokio_tungstenite::tungstenite::Message;

/// The signal of `v5.channel.k8s.io` that a channel is closed, whose number follows.
const CLOSE: u8 = 255;

/// The encoding of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Codec {
    /// The number is a digit, and the data is in base64.
    pub is_base64: bool,
    /// A client can close channels.
    pub closes: bool,
}

/// A message of the client, decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Received {
    Data(u8, Bytes),
    /// The client sends no more on the channel.
    Closed(u8),
    /// Nothing: a ping, or an empty message.
    Nothing,
    /// The client has closed the WebSocket, or does not keep to the protocol.
    End,
}

impl Codec {
    /// Reads a message.
    pub(super) fn decode(self, message: Message) -> Received {
        let data = match message {
            Message::Binary(data) => data,
            Message::Text(text) => Bytes::from(text),
            Message::Close(_) => return Received::End,
            _ => return Received::Nothing,
        };
        let Some((&channel, rest)) = data.split_first() else {
            return Received::Nothing;
        };
        match (self.closes && channel == CLOSE, rest) {
            (true, [closed]) => return Received::Closed(*closed),
            (true, _) => return Received::End,
            _ => {}
        }
        match self.is_base64 {
            false => Received::Data(channel, data.slice(1..)),
            true => match BASE64_STANDARD.decode(rest) {
                Ok(rest) => Received::Data(channel.wrapping_sub(b'0'), rest.into()),
                Err(_) => Received::Nothing,
            },
        }
    }

    /// Returns a message.
    pub(super) fn encode(self, channel: u8, data: &[u8]) -> Message {
        if self.is_base64 {
            let digit = char::from(b'0'.wrapping_add(channel));
            return Message::text(format!("{digit}{}", BASE64_STANDARD.encode(data)));
        }
        let mut message = BytesMut::with_capacity(data.len() + 1);
        message.put_u8(channel);
        message.put_slice(data);
        Message::Binary(message.freeze())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BINARY: Codec = Codec {
        is_base64: false,
        closes: false,
    };
    const V5: Codec = Codec {
        closes: true,
        ..BINARY
    };
    const BASE64: Codec = Codec {
        is_base64: true,
        closes: false,
    };

    fn data(channel: u8, data: &'static [u8]) -> Received {
        Received::Data(channel, Bytes::from_static(data))
    }

    #[test]
    fn the_first_byte_is_the_channel() {
        assert_eq!(BINARY.encode(1, b"a\n"), Message::binary(&b"\x01a\n"[..]));
        assert_eq!(
            BINARY.decode(Message::binary(&b"\x00foo"[..])),
            data(0, b"foo")
        );
        assert_eq!(
            BINARY.decode(Message::binary(&b"\xff\x00"[..])),
            data(255, b"\0")
        );
        assert_eq!(BINARY.decode(Message::binary(&b""[..])), Received::Nothing);
        assert_eq!(BINARY.decode(Message::Close(None)), Received::End);
        assert_eq!(
            BINARY.decode(Message::Ping(Bytes::new())),
            Received::Nothing
        );
    }

    /// The examples of upstream's package `wsstream`.
    #[test]
    fn base64_has_digits_for_channels() {
        assert_eq!(BASE64.decode(Message::text("0Zm9vCg==")), data(0, b"foo\n"));
        assert_eq!(BASE64.encode(1, b"\n"), Message::text("1Cg=="));
        assert_eq!(BASE64.decode(Message::text("0!")), Received::Nothing);
    }

    #[test]
    fn a_client_of_version_5_closes_channels() {
        assert_eq!(
            V5.decode(Message::binary(&b"\xff\x00"[..])),
            Received::Closed(0)
        );
        assert_eq!(V5.decode(Message::binary(&b"\xff"[..])), Received::End);
        assert_eq!(
            V5.decode(Message::binary(&b"\xff\x00\x01"[..])),
            Received::End
        );
    }
}
