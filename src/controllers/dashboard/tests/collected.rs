//! The pages of shared volumes and of exams, for the rules of all pages, and their tests.

use maud::Markup;
use serde_json::{Value, json};

use super::fixtures::{Everything, condition, read, template, view};
use super::people::course;
use super::rules::elements;
use crate::api::shared_volume::SharedVolume;
use crate::config::Language;
use crate::controllers::dashboard::class::memory::{Seen, Unread};
use crate::controllers::dashboard::class::tests::fixtures::{machine, seen};
use crate::controllers::dashboard::exams::export::export;
use crate::controllers::dashboard::exams::model::{Exams, Row};
use crate::controllers::dashboard::exams::view::exams;
use crate::controllers::dashboard::student::Rights;
use crate::controllers::dashboard::ui::view::View;
use crate::controllers::dashboard::volumes::model::Volumes;
use crate::controllers::dashboard::volumes::state::VolumeState;
use crate::controllers::dashboard::volumes::view::volumes;
use crate::runtime::merge;

const DIGEST: &str = "ba27c9bd6b63ef815428da0c0d058a7e4e6c1eb08770f27438b6b441d27db8f5";

/// Returns the pages with their names. A user with these rights sees them, and other users have written this text.
pub fn pages(view: &View<'_>, rights: &dyn Rights, text: &str) -> Vec<(&'static str, Markup)> {
    let (course, class) = (course(), of_exams(text));
    let all = all_volumes(text);
    let templates = [mounting("materials", text)];
    let of_volumes = Volumes::of(&course.namespace, &all, &templates, rights);
    let none = Volumes::of(&course.namespace, &[], &[], rights);
    let mut partial = of_exams(text);
    partial.class.unread = [("tenant-bob".into(), Unread::NotYet)].into();
    let empty = seen(&[]);
    vec![
        ("volumes", volumes(view, &course, &of_volumes)),
        ("volumes-none", volumes(view, &course, &none)),
        ("exams", exams(view, &class, &Exams::of(&class, 0, rights))),
        ("exams-partial", exams(view, &partial, &Exams::of(&partial, 0, rights))),
        ("exams-none", exams(view, &empty, &Exams::of(&empty, 0, rights))),
    ]
}

fn volume(name: &str, title: &str, phase: &str, conditions: &Value) -> SharedVolume {
    read(json!({
        "metadata": {"name": name, "namespace": "workspace-net", "uid": name, "resourceVersion": "1"},
        "spec": {"prettyName": title, "size": "10Gi"},
        "status": {"phase": phase, "conditions": conditions},
    }))
}

/// A Template that mounts a volume.
fn mounting(volume: &str, title: &str) -> crate::api::Template {
    let mut found = template("net", "desktop", title, &json!({}));
    let mount = json!({"sharedVolume": {"name": volume, "namespace": "workspace-net"}, "mountPath": "/m", "readOnly": true});
    for environment in &mut found.spec.environment_list {
        environment.shared_volume_mounts = vec![read(mount.clone())];
    }
    found
}

/// A volume that is mounted, one in each other phase, one that is being deleted, and one with an invalid size.
fn all_volumes(text: &str) -> Vec<SharedVolume> {
    let failed = json!([condition("Ready", "False", "MissingCSI", text)]);
    let blocked = json!([condition("DeletionBlocked", "True", "InUse", text)]);
    let mut all =
        vec![volume("materials", text, "Ready", &json!([])), volume("title", "", "Ready", &json!([]))];
    for phase in ["", "Pending", "Provisioning", "ResourceQuotaExceeded", "Error", "Compressing"] {
        all.push(volume(&format!("of-{}", phase.to_lowercase()), text, phase, &failed));
    }
    let mut leaving = volume("leaving", text, "Deleting", &blocked);
    leaving.metadata.deletion_timestamp = read(json!("2026-11-26T17:00:00Z"));
    let mut wrong = volume("size", text, "Error", &failed);
    wrong.spec.size = read(json!(text));
    all.extend([leaving, wrong]);
    all
}

/// An exam of a student, with further members.
fn exam(owner: &str, more: &Value) -> Value {
    let mut exam = machine(owner, &format!("exam-{owner}"), "Ready");
    exam["spec"]["statusCheckUrl"] = "https://exams.example.org/status?key=hunter2".into();
    exam["spec"]["contentUrls"] =
        json!({"default": {"destination": "https://exams.example.org/up?key=hunter2"}});
    merge::apply(&mut exam, more);
    exam
}

/// A class with an exam in each state.
fn of_exams(text: &str) -> Seen {
    let receipt = json!({"name": text, "size": 12_345, "sha256": DIGEST});
    let annotations = json!({"crownlabs.polito.it/mailed-submission-receipt": "2026-11-26T18:00:00Z"});
    let sent = json!({"metadata": {"annotations": annotations}, "status": {
        "conditions": [condition("StatusChecked", "True", "Terminated", text), condition("Submitted", "True", "SubmissionCompleted", text)],
        "automation": {"lastCheckTime": "2026-11-26T17:50:00Z", "terminationTime": "2026-11-26T17:51:00Z",
            "submissionTime": "2026-11-26T18:00:00Z", "submissionAttempts": 1, "submissionReceipt": receipt}}});
    let failed = json!({"status": {
        "conditions": [condition("StatusChecked", "False", "StatusCheckFailed", text), condition("Submitted", "False", "SubmissionFailed", text)],
        "automation": {"submissionAttempts": 5}}});
    let kept = json!({"status": {
        "conditions": [condition("StatusChecked", "True", "Kept", "")],
        "automation": {"lastCheckTime": "2026-11-26T18:05:00Z", "terminationTime": "2026-11-26T19:06:00Z"}}});
    let old = json!({"status": {"conditions": [condition("Submitted", "True", "SubmissionCompleted", "")],
        "automation": {"submissionTime": "2026-11-26T18:00:00Z"}}});
    let service = json!({"metadata": {"namespace": "crownlabs-exam", "name": "exam-1"},
        "spec": {"tenant.crownlabs.polito.it/TenantRef": {"name": "service-tenant"}}});
    seen(&[
        exam("ada", &sent),
        exam("bob", &failed),
        exam("eve", &kept),
        exam("zoe", &old),
        exam("ada", &service),
        machine("ada", "no-exam", "Ready"),
    ])
}

fn english(path: &'static str) -> View<'static> {
    view(Language::ENGLISH, path)
}

#[test]
fn a_mounted_volume_cannot_be_deleted_and_names_its_templates() {
    let (course, all) = (course(), Everything(true));
    let found =
        [volume("materials", "Slides", "Ready", &json!([])), volume("data", "Data", "Ready", &json!([]))];
    let templates = [mounting("materials", "Network desktop")];
    let model = Volumes::of(&course.namespace, &found, &templates, &all);
    let titles: Vec<&str> = model.volumes.iter().map(|volume| volume.title.as_str()).collect();
    assert_eq!(titles, ["Data", "Slides"]);
    let page = volumes(&english("/courses/net/volumes"), &course, &model).into_string();
    assert!(page.contains("href=\"/courses/net/templates/desktop\">Network desktop</a>"), "{page}");
    let forms: Vec<_> = elements(&page).into_iter().filter(|one| one.name == "form").collect();
    let count = |path: &str| forms.iter().filter(|form| form.of("action") == path).count();
    assert_eq!((count("/courses/net/volumes/delete"), count("/courses/net/volumes/create")), (1, 1));
    assert!(page.contains("disabled aria-describedby=\"in-use-materials\""), "{page}");
    assert!(page.contains("name=\"name\" value=\"volume-k3x9\"") && page.contains("10 GiB"), "{page}");
    // The same name in another namespace is another volume.
    let elsewhere = Volumes::of("workspace-data", &[], &templates, &all);
    assert!(elsewhere.volumes.is_empty());
    let mut other = volume("materials", "Slides", "Ready", &json!([]));
    other.metadata.namespace = "workspace-data".into();
    assert!(Volumes::of("workspace-data", &[other], &templates, &all).volumes[0].used_by.is_empty());
}

#[test]
fn a_volume_that_is_being_deleted_says_what_uses_it_and_offers_nothing() {
    let model = Volumes::of("workspace-net", &all_volumes("Instances tenant-ada/vm"), &[], &Everything(true));
    let leaving = model.volumes.iter().find(|volume| volume.name == "leaving").expect("a volume");
    assert_eq!((leaving.state, leaving.can_delete), (VolumeState::Deleting, false));
    assert_eq!(leaving.cause.as_ref().map(|cause| &*cause.message), Some("Instances tenant-ada/vm"));
    let unnamed = model.volumes.iter().find(|volume| volume.name == "title").expect("a volume");
    assert_eq!((unnamed.title.as_str(), unnamed.state), ("title", VolumeState::Ready));
}

#[test]
fn each_exam_has_a_row_with_its_check_its_time_and_its_receipt() {
    let class = of_exams("exam.zip");
    let model = Exams::of(&class, 0, &Everything(true));
    let rows: Vec<String> = model.rows.iter().map(Row::name).collect();
    assert_eq!(
        rows,
        ["Bianchi Bob", "bianchi Zoe", "Rossi Ada", "service-tenant", "Verdi Eve"],
        "failures first"
    );
    let page = exams(&english("/courses/tea/exams"), &class, &model).into_string();
    let row = |id: &str| {
        let (_, row) = page.split_once(&format!("<tr id=\"exam-{id}\">")).expect("a row");
        row.split_once("</tr>").expect("its end").0
    };
    let sent = row("tenant-ada-exam-ada");
    for expected in [DIGEST, "12.1 KiB", "Sent by email", ">Over<", ">Uploaded<", "1 attempt<"] {
        assert!(sent.contains(expected), "{expected}: {sent}");
    }
    assert!(row("tenant-eve-exam-eve").contains("in 1 hour"), "{page}");
    assert!(row("tenant-zoe-exam-zoe").contains("No receipt"), "{page}");
    assert!(!page.contains("no-exam") && !page.contains("hunter2"), "{page}");
    let retries: Vec<_> =
        elements(&page).into_iter().filter(|one| one.of("action") == "/courses/tea/exams/retry").collect();
    assert_eq!(retries.len(), 1);
    assert!(row("tenant-bob-exam-bob").contains("/courses/tea/exams/retry"));
}

#[test]
fn an_upload_can_be_retried_with_the_right_or_where_the_right_is_unknown() {
    let mut class = of_exams("exam.zip");
    assert!(!Exams::of(&class, 0, &Everything(false)).can_retry);
    assert!(Exams::of(&class, 0, &Everything(true)).can_retry);
    class.class.is_wide = false;
    assert!(Exams::of(&class, 0, &Everything(false)).can_retry, "the API server decides");
}

#[test]
fn the_table_has_a_line_for_each_receipt_and_each_machine_without_one() {
    let class = of_exams("=HYPERLINK(\"x\")");
    let table = export(&Exams::whole(&class));
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(lines.len(), 6, "{table}");
    assert!(
        lines[0].starts_with("\u{feff}user,first,last,email,namespace,machine,")
            && lines[0].ends_with(",file,size,sha256")
    );
    let sent = lines.iter().find(|line| line.starts_with("ada,")).expect("a line");
    assert!(
        sent.starts_with(
            "ada,Ada,Rossi,ada@example.org,tenant-ada,exam-ada,VM exam-ada,desktop,2026-11-26T17:50:00Z,over,"
        ),
        "{sent}"
    );
    assert!(sent.ends_with(&format!(",\"'=HYPERLINK(\"\"x\"\")\",12345,{DIGEST}")), "{sent}");
    let service = lines.iter().find(|line| line.starts_with("service-tenant,")).expect("a line");
    assert!(service.starts_with("service-tenant,,,,crownlabs-exam,exam-1,"), "{service}");
    assert!(service.ends_with(",notyet,0,,,,,") && !table.contains("hunter2"), "{table}");
}

#[test]
fn a_large_exam_has_pages() {
    let machines: Vec<Value> = (0..150)
        .map(|number| exam("ada", &json!({"metadata": {"name": format!("exam-{number:03}")}})))
        .collect();
    let class = seen(&machines);
    let page = |number: usize| {
        let model = Exams::of(&class, number, &Everything(true));
        exams(&english("/courses/tea/exams"), &class, &model).into_string()
    };
    let first = page(0);
    assert!(
        first.contains("1 to 100 of 150") && first.contains("href=\"/courses/tea/exams?page=2\""),
        "{first}"
    );
    assert_eq!(first.matches("<tr id=").count(), 100);
    let second = page(1);
    assert!(
        second.contains("101 to 150 of 150") && second.contains("href=\"/courses/tea/exams?page=1\""),
        "{second}"
    );
    assert_eq!(page(9), second);
}

#[test]
fn hostile_texts_are_escaped() {
    let hostile = "<img src=x onerror=alert(1)>\u{202e}\u{1b}[2J";
    for language in Language::all() {
        for (name, page) in pages(&view(language, "/courses/net/volumes"), &Everything(true), hostile) {
            let page = page.into_string();
            assert!(!page.contains("<img src=x") && !page.contains(['\u{202e}', '\u{1b}']), "{name}: {page}");
        }
    }
}
