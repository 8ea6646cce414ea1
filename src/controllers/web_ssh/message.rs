//! The JSON messages between the browser and the daemon. The keys of the browser's messages may be in any case: web
//! clients send `InitialWidth` beside `vmName`.

use std::collections::HashMap;

use serde::de::value::MapDeserializer;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::controllers::shared::members::Members;

/// A message to the browser.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum ServerMessage<'a> {
    /// Output of the shell.
    Data {
        /// The text.
        data: &'a str,
    },
    /// The reason why the terminal ends. It is the last message.
    Error {
        /// The reason.
        error: &'a str,
    },
    /// A keep-alive message, sent every 30 seconds.
    Pong,
}

impl ServerMessage<'_> {
    /// The message as JSON.
    pub fn json(&self) -> String {
        // Never fails: the message and its keys are text.
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// The browser's first message: the user and the requested machine.
#[derive(Clone, PartialEq, Eq)]
pub struct Request {
    /// The token, with or without the prefix `Bearer`: of the user, or of an account that impersonates the user.
    pub token: String,
    /// The name of the user that the account of the token impersonates; `None` if the token is that of the user. The API
    /// server checks that the account may do so.
    pub user: Option<String>,
    /// The groups of that user.
    pub groups: Vec<String>,
    /// The namespace of the Instance.
    pub namespace: String,
    /// The name of the Instance.
    pub instance: String,
    /// The name of the environment.
    pub environment: String,
    /// The number of columns of the terminal, not 0.
    pub columns: i64,
    /// The number of rows of the terminal, not 0.
    pub rows: i64,
}

/// A later message of the browser.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClientMessage {
    /// Text that was typed.
    Input(String),
    /// The size of the terminal has changed.
    Resize {
        /// The number of columns.
        columns: i64,
        /// The number of rows.
        rows: i64,
    },
    /// Any other message: `ping`, which needs no response, and unknown types.
    Other,
}

/// The reason why the first message is not a valid request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoRequest {
    /// It is not a JSON object with these fields.
    Format,
    /// A field is missing or empty.
    Incomplete,
}

impl Request {
    /// Reads the first message.
    pub fn parse(message: &[u8]) -> Result<Self, NoRequest> {
        let Fields { token, user, groups, namespace, instance, environment, width, height, .. } =
            Fields::read(message).ok_or(NoRequest::Format)?;
        let is_complete = [&token, &namespace, &instance, &environment].iter().all(|text| !text.is_empty());
        if !is_complete || width == 0 || height == 0 {
            return Err(NoRequest::Incomplete);
        }
        let user = Some(user).filter(|user| !user.is_empty());
        Ok(Self { token, user, groups, namespace, instance, environment, columns: width, rows: height })
    }
}

impl ClientMessage {
    /// Reads a later message; `None` if it is not a JSON object with these fields.
    pub fn parse(message: &[u8]) -> Option<Self> {
        let Fields { kind, data, columns, rows, .. } = Fields::read(message)?;
        Some(match kind.as_str() {
            "input" => Self::Input(data),
            "resize" => Self::Resize { columns, rows },
            _ => Self::Other,
        })
    }
}

/// The fields of all messages of the browser. Fields that are missing or `null` are empty or 0.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "lowercase")]
struct Fields {
    #[serde(rename = "type")]
    kind: String,
    data: String,
    #[serde(rename = "cols")]
    columns: i64,
    rows: i64,
    token: String,
    user: String,
    groups: Vec<String>,
    namespace: String,
    #[serde(rename = "vmname")]
    instance: String,
    environment: String,
    #[serde(rename = "initialwidth")]
    width: i64,
    #[serde(rename = "initialheight")]
    height: i64,
}

impl Fields {
    /// Reads a message; `None` if it is not a JSON object with these fields. If several keys differ only in case, the
    /// last one counts. Unknown keys are skipped with any content.
    fn read(message: &[u8]) -> Option<Self> {
        let Members(members) = serde_json::from_slice(message).ok()?;
        let mut fields: HashMap<String, &RawValue> =
            members.into_iter().map(|(key, value)| (key.to_ascii_lowercase(), value)).collect();
        fields.retain(|_, value| value.get() != "null");
        Self::deserialize(MapDeserializer::<_, serde_json::Error>::new(fields.into_iter())).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_message_is_read_in_any_capitalisation() {
        let expected = Request {
            token: "t".to_owned(),
            user: None,
            groups: Vec::new(),
            namespace: "tenant-ada".to_owned(),
            instance: "vm.1".to_owned(),
            environment: "main".to_owned(),
            columns: 80,
            rows: 24,
        };
        for text in [
            r#"{"token":"t","vmName":"vm.1","namespace":"tenant-ada","Environment":"main","InitialWidth":80,"InitialHeight":24}"#,
            r#"{"initialheight":24,"INITIALWIDTH":80,"x":[{"y":null}],"environment":"main","NameSpace":"tenant-ada","vmname":"vm.1","Token":"t"}"#,
            r#"{"token":"old","token":"t","vmName":"vm.1","namespace":"tenant-ada","environment":"main","initialWidth":80,"initialHeight":24}"#,
        ] {
            assert!(Request::parse(text.as_bytes()) == Ok(expected.clone()), "{text}");
        }
    }

    #[test]
    fn the_first_message_can_name_a_user_whom_the_account_of_the_token_impersonates() {
        let read = |fields: &str| {
            let text = format!(
                r#"{{"token":"t","vmName":"v","namespace":"n","environment":"e","initialWidth":80,"initialHeight":24,{fields}}}"#
            );
            Request::parse(text.as_bytes()).map(|request| (request.user, request.groups))
        };
        let ada = Some("ada".to_owned());
        assert_eq!(
            read(r#""user":"ada","groups":["a","b"]"#),
            Ok((ada, vec!["a".to_owned(), "b".to_owned()]))
        );
        assert_eq!(read(r#""user":"","groups":null"#), Ok((None, Vec::new())));
        for fields in [r#""user":1"#, r#""groups":"a""#, r#""groups":[1]"#] {
            assert_eq!(read(fields), Err(NoRequest::Format), "{fields}");
        }
    }

    #[test]
    fn an_invalid_first_message_is_refused() {
        let complete = r#"{"token":"t","vmName":"v","namespace":"n","environment":"e","initialWidth":80,"initialHeight":24}"#;
        assert!(Request::parse(complete.as_bytes()).is_ok());
        for (from, to, fault) in [
            ("\"t\"", "\"\"", NoRequest::Incomplete),
            ("\"t\"", "null", NoRequest::Incomplete),
            ("\"e\"", "\"\"", NoRequest::Incomplete),
            ("80", "0", NoRequest::Incomplete),
            ("initialHeight", "height", NoRequest::Incomplete),
            ("\"t\"", "1", NoRequest::Format),
            ("80", "\"80\"", NoRequest::Format),
            ("80", "80.5", NoRequest::Format),
            ("}", "", NoRequest::Format),
        ] {
            let text = complete.replace(from, to);
            assert_eq!(Request::parse(text.as_bytes()).err(), Some(fault), "{text}");
        }
        for text in ["", "[]", "\"a\"", "{} {}", "\u{0}"] {
            assert_eq!(Request::parse(text.as_bytes()).err(), Some(NoRequest::Format), "{text}");
        }
    }

    #[test]
    fn later_messages_are_read() {
        let parse = |text: &str| ClientMessage::parse(text.as_bytes());
        assert_eq!(parse(r#"{"type":"input","data":"ls\r"}"#), Some(ClientMessage::Input("ls\r".to_owned())));
        assert_eq!(parse(r#"{"Type":"input"}"#), Some(ClientMessage::Input(String::new())));
        let resize = Some(ClientMessage::Resize { columns: 100, rows: -3 });
        assert_eq!(parse(r#"{"type":"resize","Cols":100,"ROWS":-3}"#), resize);
        assert_eq!(parse(r#"{"type":"ping"}"#), Some(ClientMessage::Other));
        assert_eq!(
            parse(r#"{"type":"INPUT","data":"x"}"#),
            Some(ClientMessage::Other),
            "a value is as it is"
        );
        assert_eq!(parse("{}"), Some(ClientMessage::Other));
        assert_eq!(parse("ls"), None);
        assert_eq!(parse(r#"{"type":"resize","cols":"100"}"#), None);
    }

    #[test]
    fn messages_to_the_browser_are_json() {
        assert_eq!(
            ServerMessage::Data { data: "a\u{1b}\"€" }.json(),
            r#"{"type":"data","data":"a\u001b\"€"}"#
        );
        assert_eq!(ServerMessage::Error { error: "e" }.json(), r#"{"type":"error","error":"e"}"#);
        assert_eq!(ServerMessage::Pong.json(), r#"{"type":"pong"}"#);
    }
}
