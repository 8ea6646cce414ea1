//! `crownlabs class`: the actions on the machines of a class from the command line, with the account of a kubeconfig.

mod text;

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use http::Request;
use kube::Client;
use serde::de::IgnoredAny;
use serde_json::Value;
use tokio::time::Instant;

use crate::api::names::{check_dns_label, check_object_name};
use crate::api::template::{Template, TemplateKind};
use crate::api::workspace::{Workspace, WorkspaceKind};
use crate::api::{Kind, Object};
use crate::class::cluster::Cluster;
use crate::class::model::{ActionId, People, State, Totals, Verb};
use crate::class::plan::Action;
use crate::class::read::read;
use crate::class::run::{check, run};
use crate::config::nearest;
use crate::manager::start_up::{self, ClusterOptions};
use crate::runtime::ObjectKey;
use crate::runtime::client::{self, Call};
use crate::runtime::clock;
use crate::runtime::error::{ApiError, unreadable};
use crate::runtime::gate::Gate;
use crate::runtime::plan::KindInfo;

/// Changes begin within this time. The command can be repeated with the same identifier.
const LIMIT: Duration = Duration::from_hours(1);
/// The maximum number of Templates in a message.
const NAMED: usize = 10;

/// The arguments of the command.
#[derive(Debug, Clone)]
pub struct ClassAction {
    /// The action on the machines.
    pub verb: Verb,
    /// The name of the Workspace.
    pub workspace: String,
    /// The name of the Template of the machines, in the namespace of the Workspace.
    pub template: Option<String>,
    /// The names of the Tenants, as [`ClassAction::names`] reads them; all students of the course without them.
    pub people: Option<BTreeSet<String>>,
    /// The identifier of the action that is continued; `None` for a new one.
    pub id: Option<String>,
    /// Whether to only check the changes.
    pub is_dry: bool,
    /// Whether failed uploads are requested again.
    pub is_retry: bool,
}

/// The output format of the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClassFormat {
    /// A table for people.
    Table,
    /// JSON.
    Json,
    /// CSV for spreadsheets.
    Csv,
}

/// The output of the command.
#[derive(Debug)]
pub struct ClassResult {
    /// The text.
    pub text: String,
    /// Whether no row is refused or still to do.
    pub is_complete: bool,
}

impl ClassAction {
    /// Reads the names of a file: the first column of each line, without a heading `user`, empty lines and comments (`#`).
    ///
    /// # Errors
    /// The first line without a valid name.
    pub fn names(text: &str) -> anyhow::Result<BTreeSet<String>> {
        let mut names = BTreeSet::new();
        for (at, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
            let column = line.split([',', ';', '\t']).next().unwrap_or_default();
            let name = column.trim().trim_matches('"');
            if name.is_empty() || name.starts_with('#') || at == 0 && name == "user" {
                continue;
            }
            check_object_name(name).with_context(|| format!("line {}", at + 1))?;
            names.insert(name.to_owned());
        }
        Ok(names)
    }
}

/// Carries out an action on a class. `say` receives the identifier before the first change.
///
/// # Errors
/// When the course cannot be read, or the Template is unknown. Refused changes are part of the result.
pub async fn class(
    arguments: &ClassAction,
    cluster: &ClusterOptions,
    format: ClassFormat,
    say: &dyn Fn(&str),
) -> anyhow::Result<ClassResult> {
    let ClassAction { verb, workspace, template, people, id, is_dry, is_retry } = arguments;
    check_dns_label(workspace).with_context(|| format!("{workspace:?} is not a valid Workspace name"))?;
    let id = identifier(id.as_deref())?;
    let caller = Caller(client::build(start_up::kubeconfig(cluster).await?, Gate::open())?);
    let namespace = namespace_of(&caller, workspace).await?;
    let template = match (template, verb) {
        (None, Verb::Stop | Verb::Collect | Verb::Delete) => None,
        (name, _) => Some(template_of(&caller, &namespace, name.as_deref()).await?),
    };
    let people = people.clone().map_or(People::All, People::Named);
    let class = Box::pin(read(&caller, workspace, &namespace, &people)).await;
    let class = class.map_err(|error| unread("the class", &error))?;
    let now = clock::now();
    let action = Action {
        verb: *verb,
        id: &id,
        course: workspace,
        template: template.as_ref(),
        is_retry: *is_retry,
        now,
    };
    let (rows, until) = (action.rows(&class), Instant::now() + LIMIT);
    let rows = if *is_dry {
        Box::pin(check(&caller, rows, usize::MAX, until)).await
    } else {
        say(&format!("action {id}: if it is interrupted, repeat the command with --id {id}"));
        Box::pin(run(&caller, &action, rows, until)).await
    };
    let is_complete = !rows.iter().any(|row| match row.state {
        State::Refused(_) => true,
        State::ToDo(_) => !is_dry,
        State::Done | State::Running | State::Unchanged(_) => false,
    });
    let totals = Totals::of(&rows);
    let text = match format {
        ClassFormat::Table => text::table(&rows, &totals, *verb, *is_dry),
        ClassFormat::Json => text::json(&rows, &id, *verb, workspace),
        ClassFormat::Csv => text::csv(&rows, *verb),
    };
    Ok(ClassResult { text, is_complete })
}

/// Returns the identifier of the continued action, or a new one.
fn identifier(id: Option<&str>) -> anyhow::Result<ActionId> {
    let now = clock::now();
    let Some(text) = id else {
        return ActionId::new(now).context("the system has no random numbers");
    };
    let known = ActionId::parse(text);
    let known = known.with_context(|| format!("--id {text:?} is not the identifier of an action"))?;
    if known.is_open(now) {
        return Ok(known);
    }
    bail!("the action {known} is older than a day and cannot be continued: omit --id to begin a new one")
}

/// Returns the namespace of the Templates of a Workspace.
async fn namespace_of(caller: &Caller, workspace: &str) -> anyhow::Result<String> {
    let found: Result<Workspace, ApiError> =
        caller.get::<WorkspaceKind>(&ObjectKey::new("", workspace)).await;
    let found = found.map_err(|error| unread(&format!("Workspace {workspace}"), &error))?;
    let stated = &found.status.namespace.name;
    Ok(if stated.is_empty() { format!("workspace-{workspace}") } else { stated.clone() })
}

/// Returns the Template with this name, or the only Template of the course.
async fn template_of(caller: &Caller, namespace: &str, name: Option<&str>) -> anyhow::Result<Template> {
    let all: Result<Vec<Template>, ApiError> = caller.list::<TemplateKind>(namespace, "").await;
    let mut all = all.map_err(|error| unread(&format!("the Templates in {namespace}"), &error))?;
    all.sort_by(|one, other| one.name().cmp(other.name()));
    let names: Vec<String> = all.iter().take(NAMED).map(|template| template.name().to_owned()).collect();
    let Some(name) = name else {
        let is_only = all.len() == 1;
        let only = all.pop().with_context(|| format!("the namespace {namespace} has no Template"))?;
        if is_only {
            return Ok(only);
        }
        bail!("the course has several Templates: pass --template NAME ({})", names.join(", "));
    };
    let meant = nearest(name, all.iter().map(Object::name)).map(str::to_owned);
    let found = all.into_iter().find(|template| template.name() == name);
    found.with_context(|| match meant {
        Some(meant) => format!("Template {namespace}/{name} not found; did you mean {meant}?"),
        None if names.is_empty() => format!("Template {namespace}/{name} not found; the namespace has none"),
        None => format!("Template {namespace}/{name} not found; Templates include {}", names.join(", ")),
    })
}

/// Turns a failed read into one sentence.
fn unread(what: &str, error: &ApiError) -> anyhow::Error {
    match error {
        ApiError::NotFound(_) => {
            anyhow!("{what} does not exist in this cluster: check the name and --context")
        }
        ApiError::Forbidden(message) => anyhow!("you are not allowed to read {what}: {message}"),
        error => anyhow!("{what} cannot be read: {error}"),
    }
}

/// The cluster, with the account of the kubeconfig.
struct Caller(Client);

impl Cluster for Caller {
    async fn list<T: Kind>(&self, namespace: &str, query: &str) -> Result<Vec<Object<T>>, ApiError> {
        let mut objects: Vec<Result<Object<T>, serde_json::Error>> = Vec::new();
        let query = if query.is_empty() { String::new() } else { format!("&{query}") };
        let read = |item: Value| objects.push(serde_json::from_value(item));
        client::each_listed(&self.0, &KindInfo::of::<T>().path(namespace), &query, read).await?;
        objects.into_iter().collect::<Result<_, _>>().map_err(|error| unreadable(&error))
    }

    async fn get<T: Kind>(&self, key: &ObjectKey) -> Result<Object<T>, ApiError> {
        let path = KindInfo::of::<T>().object_path(key)?;
        let request = Request::get(path).body(Vec::new());
        let request = request.map_err(|error| ApiError::Invalid(error.to_string()))?;
        let value: Value = self.0.request(request).await?;
        serde_json::from_value(value).map_err(|error| unreadable(&error))
    }

    async fn call(&self, call: Call) -> Result<(), ApiError> {
        self.0.request::<IgnoredAny>(call.request()?).await?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_the_first_column_of_a_file() {
        let names = |text: &str| ClassAction::names(text).map(|names| names.into_iter().collect::<Vec<_>>());
        for (text, expected) in [
            ("ada\nbob\n", &["ada", "bob"][..]),
            ("\u{feff}user,name\r\nada.rossi,Ada\r\n", &["ada.rossi"]),
            ("# class of today\n\n  ada  \n\"bob\";x\n", &["ada", "bob"]),
            ("ada\nuser\n", &["ada", "user"]),
            ("", &[]),
        ] {
            assert_eq!(names(text).expect("names"), expected, "{text:?}");
        }
        let error = names("ada\nNot a name\n").expect_err("a name with spaces");
        assert!(format!("{error:#}").starts_with("line 2: name \"Not a name\" must"), "{error:#}");
    }

    #[test]
    fn an_action_is_continued_with_its_identifier_for_a_day() {
        assert!(identifier(None).is_ok_and(|id| id.is_open(clock::now())));
        for (text, why) in [
            ("x", "--id \"x\" is not the identifier of an action"),
            ("abcdefghij234567-1", "the action abcdefghij234567-1 is older than a day"),
        ] {
            let error = identifier(Some(text)).expect_err("no valid identifier").to_string();
            assert!(error.starts_with(why), "{error}");
        }
    }
}
