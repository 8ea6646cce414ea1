//! The forms of values.

use serde_json::{Map, Value, json};

use super::table::Form;
use crate::config::ConfigDuration;

/// A scalar as text.
pub fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Converts a value to its form in the configuration. The error says what was expected.
pub fn converted(value: &Value, form: Form) -> Result<Value, &'static str> {
    let text = plain(value);
    match form {
        Form::Same => Ok(value.clone()),
        Form::Duration => {
            text.parse::<ConfigDuration>().map(|time| json!(time)).map_err(|_| "a duration such as 24h")
        }
        Form::Minutes => value.as_u64().map(|time| format!("{time}m").into()).ok_or("a number of minutes"),
        Form::Url => Ok(text.trim_end_matches('/').into()),
        Form::List => Ok(listed(value, ',').into()),
        Form::Pairs(between) => {
            let split =
                |pair: String| pair.split_once('=').map(|(key, value)| (key.to_owned(), Value::from(value)));
            let pairs: Option<Map<String, Value>> = listed(value, between).into_iter().map(split).collect();
            pairs.map(Value::Object).ok_or("pairs such as key=value")
        }
        Form::Gigabytes => value.as_u64().map(|amount| format!("{amount}G").into()).ok_or("a whole number"),
        Form::Port => {
            let port = text.parse::<u16>().ok().filter(|port| *port != 0).ok_or("a port")?;
            Ok(format!("0.0.0.0:{port}").into())
        }
        Form::Query => Ok(text.replace("\"%s\"", "%q").into()),
    }
}

/// The items of a list, or of a text with separators between them, without blanks around them.
pub fn listed(value: &Value, between: char) -> Vec<String> {
    let texts = match value {
        Value::Array(items) => items.iter().map(plain).collect(),
        value => vec![plain(value)],
    };
    let items = texts.iter().flat_map(|text| text.split(between)).map(str::trim);
    items.filter(|item| !item.is_empty()).map(str::to_owned).collect()
}
