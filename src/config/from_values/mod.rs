//! The configuration that says what the values of the Go operators' Helm chart say.

mod image_lists;
mod table;

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use self::table::{Form, LEFT_OUT, PARTS};
use super::{Config, ConfigDuration};

/// The members of a part that configure a program, and not the objects around it.
const CONFIGURING: [&str; 2] = ["configurations", "webhook"];
/// Values that only the chart has whose operators name all objects of an Instance after the environment, too.
const NEWER: [&str; 3] = ["/bastion", "/gatewayAPI", "/global/gateway"];
/// Where the secret of the client is expected; the chart of the daemon sets the key when it mounts a Secret.
const CLIENT_SECRET: &str = "/etc/crownlabs/keycloak/client-secret";

/// A configuration made from values.
#[derive(Debug)]
pub struct FromValues {
    /// The configuration, as YAML.
    pub yaml: String,
    /// What was not carried over, and what is left to do, a sentence each.
    pub messages: Vec<String>,
}

/// Makes a configuration from the values of the chart with the Go operators, as YAML.
///
/// # Errors
/// When the text is no YAML, or has none of the chart's parts.
pub fn from_values(text: &str) -> Result<FromValues, String> {
    let values: Value = serde_saphyr::from_str(text).map_err(|error| error.to_string())?;
    let parts: Vec<_> = PARTS.into_iter().filter(|(part, _)| values.get(part).is_some()).collect();
    if parts.is_empty() {
        let parts = PARTS.map(|(part, _)| part).join(", ");
        return Err(format!(
            "these are no values of the chart with the Go operators: none of {parts} is there"
        ));
    }
    let mut conversion = Conversion::new(&values);
    for (part, members) in &parts {
        for (member, rows) in *members {
            for (value, key, form) in *rows {
                conversion.carry(&format!("{part}.{member}.{value}"), key, *form);
            }
        }
    }
    conversion.images();
    conversion.accounts();
    conversion.mail();
    conversion.image_lists();
    conversion.exams();
    conversion.as_before();
    for (part, _) in parts {
        for member in CONFIGURING {
            conversion.report(&format!("{part}.{member}"));
        }
    }
    let Conversion { configuration, mut messages, .. } = conversion;
    let options = serde_saphyr::ser_options! { prefer_block_scalars: false };
    let yaml =
        serde_saphyr::to_string_with_options(&configuration, options).map_err(|error| error.to_string())?;
    if let Err(error) = Config::parse("the configuration", &yaml) {
        messages.push(format!("to be mended before it can be used:\n{error}"));
    }
    Ok(FromValues { yaml, messages })
}

/// A conversion under way.
struct Conversion<'v> {
    values: &'v Value,
    configuration: Value,
    /// The paths of the values that have been looked at.
    seen: BTreeSet<String>,
    messages: Vec<String>,
}

impl<'v> Conversion<'v> {
    fn new(values: &'v Value) -> Self {
        let configuration = json!({
            "apiVersion": "config.crownlabs.polito.it/v1alpha1",
            "kind": "ControllerManagerConfiguration",
        });
        Self { values, configuration, seen: BTreeSet::new(), messages: Vec::new() }
    }

    /// The value at a path; none where it is empty.
    fn value(&mut self, path: &str) -> Option<&'v Value> {
        self.seen.insert(path.to_owned());
        let value = path.split('.').try_fold(self.values, |value, key| value.get(key))?;
        (!value.is_null() && value != "").then_some(value)
    }

    fn text(&mut self, path: &str) -> Option<String> {
        self.value(path).map(plain)
    }

    /// Writes a key of the configuration. One that was written before with another value stays as it was.
    fn set(&mut self, path: &str, key: &str, value: Value) {
        let mut place = &mut self.configuration;
        for part in key.split('.') {
            if !place.is_object() {
                *place = Value::Object(Map::new());
            }
            let Value::Object(members) = place else { return };
            place = members.entry(part).or_insert(Value::Null);
        }
        match place {
            Value::Null => *place = value,
            before if *before == value => {}
            before => {
                self.messages.push(format!("{path}: {value} is left out, since {key} is {before} already"));
            }
        }
    }

    /// Carries a value over.
    fn carry(&mut self, path: &str, key: &str, form: Form) {
        let Some(value) = self.value(path) else { return };
        match converted(value, form) {
            Ok(converted) => self.set(path, key, converted),
            Err(expected) => self.messages.push(format!("{path}: {value} is left out: expected {expected}")),
        }
    }

    /// The image of the uploader, which the daemon names with its tag.
    fn images(&mut self) {
        let options = "instance-operator.configurations.containerEnvironmentOptions";
        let tag = self.text(&format!("{options}.tag")).or_else(|| self.text("global.version"));
        let Some(image) = self.text(&format!("{options}.contentUploaderImage")) else { return };
        let image = format!("{image}:{}", tag.unwrap_or_else(|| "latest".to_owned()));
        self.set(options, "controllers.submission.uploaderImage", image.into());
    }

    /// Keycloak: the older chart has no switch for it, so a URL turns it on.
    fn accounts(&mut self) {
        for part in ["operator", "tenant-operator"] {
            let keycloak = format!("{part}.configurations.keycloak");
            let switch =
                self.value(&format!("{part}.configurations.features.keycloak")).and_then(Value::as_bool);
            let is_on = switch.unwrap_or(true) && self.value(&format!("{keycloak}.url")).is_some();
            let secret = self.value(&format!("{keycloak}.clientSecret")).is_some();
            if is_on {
                self.set(&keycloak, "integrations.keycloak.enabled", true.into());
                self.set(&keycloak, "integrations.keycloak.clientSecretFile", CLIENT_SECRET.into());
            }
            if is_on && secret {
                self.messages.push(format!(
                    "{keycloak}.clientSecret: put it into a Secret and name that as `secrets.keycloak` of the chart, which \
                     mounts it and sets integrations.keycloak.clientSecretFile"
                ));
            }
        }
    }

    /// Mail: the Go operators always have it; here it is for warnings.
    fn mail(&mut self) {
        let configurations = "instance-operator.configurations";
        let warns = ["enableInactivityNotifications", "enableExpirationNotifications"].map(|switch| {
            self.value(&format!("{configurations}.automation.{switch}")) == Some(&Value::Bool(true))
        });
        if self.value(&format!("{configurations}.mailConfigDir")).is_some() && warns.contains(&true) {
            self.set(configurations, "integrations.mail.transport", "smtp".into());
        }
    }

    /// The exam agent, which has a chart of its own: its values turn it on.
    fn exams(&mut self) {
        let path = "exam-agent.configurations.targetNamespace";
        if self.value(path).is_none() {
            return;
        }
        self.set(path, "controllers.examAgent.enabled", true.into());
        let path = "exam-agent.configurations.allowedIPs";
        if self.value(path).is_none_or(|value| listed(value, ',').is_empty()) {
            self.set(path, "controllers.examAgent.allowAnyone", true.into());
            self.messages.push(format!(
                "{path} is empty: whoever reaches the exam agent may create and delete Instances, as before. Name the exam \
                 servers in controllers.examAgent.allowedIps, and leave controllers.examAgent.allowAnyone out"
            ));
        }
    }

    /// What the chart of the daemon turns on and the Go operators did not do: new machines are like those that exist.
    fn as_before(&mut self) {
        for key in ["controllers.instance.ephemeralStorage", "controllers.snapshot.ephemeralStorage"] {
            self.set("", key, "".into());
        }
        self.set("", "controllers.tenant.countQuotas.enabled", false.into());
        self.set("", "controllers.instance.vmPower", "running".into());
        self.set("", "controllers.instance.layout", self.layout().into());
        // The annotations of the Services that exist stay as they are.
        let key = "controllers.publicExposure.loadBalancerIpsKey";
        if self.configuration.pointer(&format!("/{}", key.replace('.', "/"))).is_none() {
            self.set("", key, "metallb.universe.tf/loadBalancerIPs".into());
        }
    }

    /// The layout that the operators of these values give to Instances. Values that only the newer chart has tell it.
    fn layout(&self) -> &'static str {
        let is_newer =
            NEWER.iter().any(|path| self.values.pointer(path).is_some_and(|value| !value.is_null()));
        if is_newer { "perEnvironment" } else { "classic" }
    }

    /// Reports every value below a path that has not been looked at.
    fn report(&mut self, path: &str) {
        if let Some((_, why)) = LEFT_OUT.iter().find(|(left_out, _)| path.ends_with(left_out)) {
            if self.value(path).is_some() && !why.is_empty() {
                self.messages.push(format!("{path}: left out: {why}"));
            }
            return;
        }
        if self.seen.contains(path) {
            return;
        }
        match self.value(path) {
            Some(Value::Object(members)) => {
                members.keys().for_each(|key| self.report(&format!("{path}.{key}")));
            }
            Some(value) => {
                self.messages.push(format!("{path}: {value} is left out: there is no such key here"));
            }
            None => {}
        }
    }
}

/// A scalar as text.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// A value in the form of the configuration; the error says what was expected.
fn converted(value: &Value, form: Form) -> Result<Value, &'static str> {
    let text = plain(value);
    match form {
        Form::Same => Ok(value.clone()),
        Form::Duration => {
            let duration: ConfigDuration = text.parse().map_err(|_| "a duration such as 24h")?;
            Ok(json!(duration))
        }
        Form::Url => Ok(text.trim_end_matches('/').into()),
        Form::List => Ok(listed(value, ',').into()),
        Form::Pairs(between) => {
            let pairs = listed(value, between);
            let split = |pair: &String| {
                let (key, value) = pair.split_once('=')?;
                Some((key.to_owned(), Value::from(value)))
            };
            let pairs: Option<Map<String, Value>> = pairs.iter().map(split).collect();
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
fn listed(value: &Value, between: char) -> Vec<String> {
    let texts = match value {
        Value::Array(items) => items.iter().map(plain).collect(),
        value => vec![plain(value)],
    };
    let items = texts.iter().flat_map(|text| text.split(between)).map(str::trim);
    items.filter(|item| !item.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests;
