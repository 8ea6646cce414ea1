//! Tests of the table and of its export.

use serde_json::{Value, json};

use crate::config::Language;
use crate::controllers::dashboard::class::export::export;
use crate::controllers::dashboard::class::filter::{Filter, State};
use crate::controllers::dashboard::class::memory::{Seen, Unread};
use crate::controllers::dashboard::class::model::{ROWS, Table};
use crate::controllers::dashboard::class::objects::Member;
use crate::controllers::dashboard::class::tests::fixtures::{machine, person, seen};
use crate::controllers::dashboard::http::fields::Fields;
use crate::controllers::dashboard::standing::Standing;
use crate::controllers::dashboard::tests::fixtures::read;
use crate::controllers::dashboard::texts::texts;

fn filter(query: &str) -> Filter {
    Filter::of(&Fields::parse(query.as_bytes()))
}

/// The class of the tests: one student without a machine, one with two.
fn class() -> Seen {
    let mut other = machine("bob", "lab", "Starting");
    other["spec"]["template.crownlabs.polito.it/TemplateRef"]["name"] = json!("server");
    other["status"]["inactivity"] =
        json!({"since": "2026-11-26T10:00:00Z", "nextWarning": "2026-11-26T20:00:00Z"});
    let mut off = machine("eve", "old", "Off");
    off["status"] = json!({"phase": "Off"});
    seen(&[machine("ada", "a", "Failed"), machine("ada", "b", "Ready"), other, off])
}

/// Returns the user names of the rows that a query selects.
fn names<'s>(seen: &'s Seen, query: &str) -> Vec<&'s str> {
    Table::of(seen, &filter(query)).rows.iter().map(|row| row.name).collect()
}

#[test]
fn a_row_has_the_machine_that_needs_attention_first() {
    let class = class();
    let table = Table::of(&class, &Filter::default());
    let rows: Vec<_> = table.rows.iter().map(|row| (row.name, row.state, row.machines.len())).collect();
    let machine = State::Machine;
    let expected = [
        ("bob", machine(Standing::Starting), 1),
        ("zoe", State::Without, 0),
        ("ada", machine(Standing::Failed), 2),
        ("eve", machine(Standing::Off), 1),
    ];
    assert_eq!(rows, expected, "sorted by the last and the first name");
    let totals: Vec<_> = table.totals.iter().map(|(state, count)| (*state, *count)).collect();
    let expected = [
        (machine(Standing::Starting), 1),
        (machine(Standing::Off), 1),
        (machine(Standing::Failed), 1),
        (State::Without, 1),
    ];
    assert_eq!((totals.as_slice(), table.people, table.missing), (&expected[..], 4, 0));
}

#[test]
fn rows_are_selected_and_sorted_by_the_query() {
    let class = class();
    for (query, expected) in [
        ("", vec!["bob", "zoe", "ada", "eve"]),
        ("sort=-person", vec!["eve", "ada", "zoe", "bob"]),
        ("sort=state", vec!["ada", "zoe", "bob", "eve"]),
        ("sort=-state", vec!["eve", "bob", "zoe", "ada"]),
        // Rows without a value come last in both orders.
        ("sort=used", vec!["ada", "bob", "zoe", "eve"]),
        ("sort=-used", vec!["bob", "ada", "zoe", "eve"]),
        ("sort=deadline", vec!["bob", "ada", "zoe", "eve"]),
        ("sort=-deadline", vec!["ada", "bob", "zoe", "eve"]),
        ("sort=machine", vec!["ada", "bob", "eve", "zoe"]),
        ("state=failed", vec!["ada"]),
        ("state=none", vec!["zoe"]),
        ("state=importing", vec![]),
        ("q=BIANCHI", vec!["bob", "zoe"]),
        ("q=zoe+bianchi", vec!["zoe"]),
        ("q=eve%40example", vec!["eve"]),
        ("q=vm+lab", vec!["bob"]),
        ("q=bianchi&state=none", vec!["zoe"]),
        ("q=nobody", vec![]),
        // The machines of other Templates do not count.
        ("template=desktop&state=none", vec!["bob", "zoe"]),
        ("template=server&state=starting", vec!["bob"]),
        ("template=none&state=none", vec!["bob", "zoe", "ada", "eve"]),
    ] {
        assert_eq!(names(&class, query), expected, "{query}");
    }
}

#[test]
fn the_totals_do_not_depend_on_the_selected_state() {
    let class = class();
    let [all, failed] = ["", "state=failed"].map(|query| Table::of(&class, &filter(query)).totals);
    assert_eq!(all, failed);
    let [all, found] = ["", "q=bianchi"].map(|query| Table::of(&class, &filter(query)).totals.len());
    assert_eq!((all, found), (4, 2));
}

#[test]
fn a_page_has_at_most_100_rows_and_a_number_above_the_last_page_shows_the_last() {
    let mut class = seen(&[]);
    class.class.people.clear();
    for number in 0..250 {
        let name = format!("s{number:03}");
        class.class.join(read::<Member>(person(&name, "", "", "user")));
    }
    for (query, first, count) in
        [("", 0, ROWS), ("page=2", 100, ROWS), ("page=3", 200, 50), ("page=9", 200, 50)]
    {
        let table = Table::of(&class, &filter(query));
        assert_eq!((table.first, table.rows.len(), table.matching), (first, count, 250), "{query}");
        assert_eq!(table.rows[0].name, format!("s{first:03}"));
    }
}

#[test]
fn a_machine_belongs_to_the_tenant_of_its_namespace_whatever_tenant_it_names() {
    let named = |namespace: &str, tenant: &str| {
        let mut object = machine("x", "vm", "Ready");
        object["metadata"]["namespace"] = json!(namespace);
        object["spec"]["tenant.crownlabs.polito.it/TenantRef"]["name"] = json!(tenant);
        object
    };
    let owner = |object: Value| {
        let class = seen(&[object]);
        let table = Table::of(&class, &filter("state=ready"));
        table.rows.iter().map(|row| row.name.to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(owner(named("tenant-ada", "eve")), ["ada"]);
    assert_eq!(owner(named("tenant-mallory", "ada")), Vec::<String>::new(), "she is in no row");
    assert_eq!(owner(named("exams", "eve")), ["eve"]);
    assert_eq!(owner(named("exams", "nobody")), Vec::<String>::new());
    let mut of_another_course = machine("ada", "vm", "Ready");
    of_another_course["metadata"]["labels"] = json!({"crownlabs.polito.it/workspace": "net"});
    assert_eq!(owner(of_another_course), Vec::<String>::new());
}

#[test]
fn machines_that_are_not_read_have_no_state() {
    let mut class = class();
    class.class.unread =
        [("tenant-zoe".into(), Unread::NotYet), ("tenant-eve".into(), Unread::TooMany)].into();
    class.class.machines.retain(|key, _| key.namespace.as_str() != "tenant-eve");
    let table = Table::of(&class, &Filter::default());
    let states: Vec<_> =
        table.rows.iter().filter(|row| row.state == State::Unknown).map(|row| row.name).collect();
    assert_eq!((states, table.missing), (vec!["zoe", "eve"], 1));
    assert_eq!(names(&class, "state=none"), Vec::<&str>::new());
}

#[test]
fn the_export_has_a_row_for_each_machine_and_for_each_student_without_one() {
    let class = class();
    let table = Table::whole(&class, &Filter::default());
    let text = export(texts(Language::ENGLISH), &table);
    let lines: Vec<&str> = text.trim_start_matches('\u{feff}').lines().collect();
    assert_eq!(lines.len(), 6, "{text}");
    assert_eq!(
        lines[0],
        "user,first,last,email,namespace,machine,title,template,state,reason,cause,used,step,due,size"
    );
    assert_eq!(
        lines[1],
        "bob,Bob,Bianchi,bob@example.org,tenant-bob,lab,VM lab,workspace-tea/server,starting,PodUnschedulable,\
         Pod vm-0: 0/12 nodes are available,2026-11-26T10:00:00Z,warned,2026-11-26T20:00:00Z,"
    );
    assert_eq!(lines[2], "zoe,Zoe,bianchi,zoe@example.org,tenant-zoe,,,,none,,,,,,");
    assert_eq!(
        lines[3],
        "ada,Ada,Rossi,ada@example.org,tenant-ada,a,VM a,workspace-tea/desktop,failed,PodUnschedulable,\
         Pod vm-0: 0/12 nodes are available,2026-11-25T10:00:00Z,stopped,2026-11-27T06:00:00Z,\
         \"2 cores, 4 GiB of memory, 20 GiB of disk\""
    );
    assert!(lines[5].contains(",old,VM old,workspace-tea/desktop,off,,,,,,"), "{}", lines[5]);
}

#[test]
fn the_export_has_no_formulas_and_no_control_characters() {
    let mut class = seen(&[]);
    class.class.join(read::<Member>(person("ada", "=HYPERLINK(\"x\")", "a\nb\u{202e}", "user")));
    let text = export(texts(Language::ENGLISH), &Table::whole(&class, &Filter::default()));
    assert!(text.contains("ada,\"'=HYPERLINK(\"\"x\"\")\",a\\nb\\u{202e},"), "{text}");
}
