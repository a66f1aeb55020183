//! Encodes a command's exit status for the error stream.

use bytes::Bytes;
use serde_json::{Value, json};

/// The end of a command, or of an attachment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The command has exited with 0, or the container has ended.
    Success,
    /// The command has exited with another code.
    Exited(i32),
    /// The streams broke.
    Failed(String),
}

/// The form of the error stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ErrorForm {
    /// A `Status` in JSON, even of a success.
    Status,
    /// The message of a failure.
    Text,
}

impl Outcome {
    /// Returns what is written to the error stream; empty for a success in a text.
    pub(super) fn encode(&self, form: ErrorForm) -> Bytes {
        match form {
            ErrorForm::Status => self.status().to_string().into(),
            ErrorForm::Text => self.message().into(),
        }
    }

    fn message(&self) -> String {
        match self {
            Self::Success => String::new(),
            Self::Exited(code) => format!(
                "command terminated with non-zero exit code: command terminated with exit code {code}"
            ),
            Self::Failed(error) => format!("Internal error occurred: {error}"),
        }
    }

    fn status(&self) -> Value {
        let (reason, code, causes) = match self {
            Self::Success => return json!({ "metadata": {}, "status": "Success" }),
            Self::Exited(code) => {
                let cause = json!([{ "reason": "ExitCode", "message": code.to_string() }]);
                ("NonZeroExitCode", None, cause)
            }
            Self::Failed(error) => ("InternalError", Some(500), json!([{ "message": error }])),
        };
        let mut status = json!({
            "metadata": {},
            "status": "Failure",
            "message": self.message(),
            "reason": reason,
            "details": { "causes": causes },
        });
        if let Some(code) = code {
            status["code"] = code.into();
        }
        status
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(outcome: &Outcome, form: ErrorForm) -> String {
        String::from_utf8(outcome.encode(form).to_vec()).unwrap()
    }

    #[test]
    fn an_exit_code_is_the_cause_of_a_status() {
        let status = encoded(&Outcome::Exited(3), ErrorForm::Status);
        let status: Value = serde_json::from_str(&status).unwrap();
        assert_eq!(status["status"], "Failure");
        assert_eq!(status["reason"], "NonZeroExitCode");
        assert_eq!(
            status["details"]["causes"],
            json!([{ "reason": "ExitCode", "message": "3" }])
        );
        assert_eq!(
            encoded(&Outcome::Success, ErrorForm::Status),
            r#"{"metadata":{},"status":"Success"}"#
        );
    }

    #[test]
    fn older_protocols_have_the_message_of_a_failure() {
        assert_eq!(encoded(&Outcome::Success, ErrorForm::Text), "");
        assert_eq!(
            encoded(&Outcome::Failed("no".into()), ErrorForm::Text),
            "Internal error occurred: no"
        );
        assert!(encoded(&Outcome::Exited(7), ErrorForm::Text).ends_with("exit code 7"));
    }
}
