//! The result of an action as text.

use serde_json::{Value, json};

use crate::api::csv;
use crate::api::shown::{escaped_json, message, one_line};
use crate::class::model::{ActionId, Refusal, Row, State, Totals, Unchanged, Verb};
use crate::explain::words;

/// Returns the result as a table, with the totals below it.
pub fn table(rows: &[Row], totals: &Totals, verb: Verb, is_dry: bool) -> String {
    let heading = ["USER", "NAME", "MACHINE", "STATE", "REASON"].map(str::to_owned);
    let all: Vec<[String; 5]> = rows.iter().map(|row| cells(row, verb)).collect();
    let lines: Vec<[String; 5]> = [heading].into_iter().chain(all).collect();
    let Totals { done, running, unchanged, to_do, refused } = totals;
    let numbers = [
        (*done, "done"),
        (*running, "running"),
        (*unchanged, "unchanged"),
        (*to_do, if is_dry { "would be changed" } else { "still to do" }),
        (*refused, "refused"),
    ];
    let numbers = numbers.into_iter().filter(|(number, _)| *number > 0);
    let numbers: Vec<String> = numbers.map(|(number, state)| format!("{number} {state}")).collect();
    let total = if numbers.is_empty() { "no students".to_owned() } else { numbers.join(", ") };
    format!("{}\n{total}\n", words::table(&lines, ""))
}

/// Returns the result as JSON.
pub fn json(rows: &[Row], id: &ActionId, verb: Verb, workspace: &str) -> String {
    let row = |row: &Row| {
        let [user, name, machine, state, reason] = cells(row, verb);
        json!({"user": user, "name": name, "machine": machine, "state": state, "reason": reason})
    };
    let value: Value = json!({
        "id": id.to_string(),
        "verb": verb.name(),
        "workspace": workspace,
        "rows": rows.iter().map(row).collect::<Vec<_>>(),
    });
    escaped_json(&format!("{value:#}\n")).into_owned()
}

/// Returns the result as CSV.
pub fn csv(rows: &[Row], verb: Verb) -> String {
    let heading = ["user", "name", "machine", "state", "reason"].map(str::to_owned);
    csv::csv([heading].into_iter().chain(rows.iter().map(|row| cells(row, verb).map(|cell| message(&cell)))))
}

/// Returns the cells of a row: user, name, machine, state, reason.
fn cells(row: &Row, verb: Verb) -> [String; 5] {
    let machine = row.machine.as_ref().map(ToString::to_string).unwrap_or_default();
    let (state, reason) = match &row.state {
        State::Done => ("done", String::new()),
        State::Running => ("running", "the upload is not complete".to_owned()),
        State::Unchanged(why) => ("unchanged", unchanged(verb, *why).to_owned()),
        State::ToDo(_) => ("todo", String::new()),
        State::Refused(why) => ("refused", one_line(&refused(why))),
    };
    [row.person.clone(), row.title.clone(), machine, state.to_owned(), reason]
}

const fn unchanged(verb: Verb, why: Unchanged) -> &'static str {
    match (why, verb) {
        (Unchanged::NoMachine, _) => "no machine",
        (Unchanged::Later, Verb::Delete) => "created after this action",
        (Unchanged::Later, _) => "changed after this action",
        (Unchanged::Already, Verb::Start) => "runs already",
        (Unchanged::Already, Verb::Stop | Verb::Delete) => "does not run",
        (Unchanged::Already, Verb::Collect) => "collected already",
    }
}

fn refused(why: &Refusal) -> String {
    match why {
        Refusal::NotEnrolled => "not a student of the course".to_owned(),
        Refusal::NoNamespace => "no namespace: it is created when the user logs in".to_owned(),
        Refusal::Leaving => "the machine is being deleted".to_owned(),
        Refusal::NoDestination => "the machine has no destination for its content".to_owned(),
        Refusal::NotUploaded(message) => format!("the upload has failed: {message}"),
        Refusal::Api(error) => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::ObjectKey;
    use crate::runtime::error::ApiError;

    fn rows() -> Vec<Row> {
        let row = |person: &str, machine: Option<&str>, state| Row {
            person: person.to_owned(),
            title: person.to_uppercase(),
            machine: machine.map(|name| ObjectKey::new(format!("tenant-{person}"), name)),
            state,
        };
        let quota = ApiError::QuotaExceeded("quota exceeded,\nCPU (9 > 8)".to_owned());
        vec![
            row("ada", Some("vm"), State::Done),
            row("bob", None, State::Unchanged(Unchanged::NoMachine)),
            row("=eve", Some("vm"), State::Refused(Refusal::Api(quota))),
        ]
    }

    #[test]
    fn the_result_is_a_table_with_totals() {
        let rows = rows();
        insta::assert_snapshot!(table(&rows, &Totals::of(&rows), Verb::Stop, false), @r"
        USER   NAME   MACHINE          STATE       REASON
        ada    ADA    tenant-ada/vm    done
        bob    BOB                     unchanged   no machine
        =eve   =EVE   tenant-=eve/vm   refused     quota exceeded, CPU (9 > 8)

        1 done, 1 unchanged, 1 refused
        ");
        assert!(table(&[], &Totals::default(), Verb::Stop, false).ends_with("\nno students\n"));
    }

    #[test]
    fn the_result_is_json_and_csv() {
        let id = ActionId::parse("abcdefghij234567-1772618400").expect("an identifier");
        let value: Value = serde_json::from_str(&json(&rows(), &id, Verb::Stop, "tea")).expect("JSON");
        assert_eq!(value["id"], "abcdefghij234567-1772618400");
        assert_eq!(value["verb"], "stop");
        let first =
            json!({"user": "ada", "name": "ADA", "machine": "tenant-ada/vm", "state": "done", "reason": ""});
        assert_eq!(value["rows"][0], first);
        let text = csv(&rows(), Verb::Stop);
        let last = text.lines().last().expect("a row");
        assert_eq!(last, "'=eve,'=EVE,tenant-=eve/vm,refused,\"quota exceeded, CPU (9 > 8)\"");
    }
}
