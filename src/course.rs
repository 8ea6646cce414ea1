//! The command that acts on the machines of a class: `class`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use crownlabs::{ClassAction, ClassFormat, ClassResult, ClassVerb, Input};

use super::terminal::{print, print_coloured, say, write};
use super::{ClusterArguments, EXIT_FOUND, block_on};

/// The arguments of `class`.
#[derive(Args)]
pub struct ClassArguments {
    /// What to do: start creates a machine for each student without one, or starts the stopped one; collect stops the
    /// machines of an exam and uploads their content.
    #[arg(value_name = "ACTION", value_parser = verb())]
    verb: ClassVerb,
    /// The name of the Workspace.
    workspace: String,
    /// The Template of the machines, in the namespace of the Workspace. Only start requires it, if the course has several;
    /// the other actions apply to the machines of all Templates without it.
    #[arg(long, value_name = "NAME")]
    template: Option<String>,
    /// A file with the names of Tenants, one in each line, or a CSV file with the names in its first column; - is standard
    /// input. By default, all students of the course.
    #[arg(long, value_name = "FILE")]
    people: Option<PathBuf>,
    /// Only check what would be changed, and what the API server would refuse.
    #[arg(long)]
    dry_run: bool,
    /// Continue the action with this identifier, which is printed when it begins. Nothing is done twice.
    #[arg(long, value_name = "ID", conflicts_with = "dry_run")]
    id: Option<String>,
    /// With the identifier of a collection, also request the uploads again that have failed.
    #[arg(long, requires = "id")]
    retry: bool,
    /// The format of the result, which has a row for each student.
    #[arg(short, long, value_name = "FORMAT", default_value = "table", value_parser = format())]
    output: ClassFormat,
    #[command(flatten)]
    cluster: ClusterArguments,
}

fn verb() -> impl TypedValueParser<Value = ClassVerb> {
    let names = ClassVerb::ALL.iter().map(|verb| verb.name());
    PossibleValuesParser::new(names).try_map(|name| ClassVerb::named(&name).ok_or("unknown action"))
}

fn format() -> impl TypedValueParser<Value = ClassFormat> {
    PossibleValuesParser::new(["table", "json", "csv"]).map(|name| match name.as_str() {
        "json" => ClassFormat::Json,
        "csv" => ClassFormat::Csv,
        _ => ClassFormat::Table,
    })
}

/// Carries out an action on a class. Exits with 4 if something was refused, or is still to do.
pub fn class(arguments: ClassArguments) -> anyhow::Result<ExitCode> {
    let ClassArguments { verb, workspace, template, people, dry_run, id, retry, output, cluster } = arguments;
    let people = match people {
        Some(file) => {
            let Input { name, text } = crownlabs::read_input(&file)?;
            Some(ClassAction::names(&text).with_context(|| format!("{name} is not a list of Tenants"))?)
        }
        None => None,
    };
    let action = ClassAction { verb, workspace, template, people, id, is_dry: dry_run, is_retry: retry };
    let result = block_on(crownlabs::class(&action, &cluster.options(None), output, &say))?;
    let ClassResult { text, is_complete } = result;
    match output {
        ClassFormat::Table => print_coloured(&text)?,
        ClassFormat::Json => print(&text)?,
        // Control characters of cells are escaped already.
        ClassFormat::Csv => write(text.as_bytes())?,
    }
    Ok(if is_complete { ExitCode::SUCCESS } else { ExitCode::from(EXIT_FOUND) })
}
