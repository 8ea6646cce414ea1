//! The receipts of uploads: the digest of the file that the exam server has received, and the mail to the Tenant.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::exam_server::{Answer, ExamServer};
use crate::expiration::mails;
use crate::lab::{Lab, PATIENCE, wait_until};
use crate::submission::{config, created_jobs, requested};
use crate::termination::await_condition;
use crate::uploader::Uploader;

/// Waits until the message of the condition begins like this.
fn await_message(lab: &Lab, namespace: &str, name: &str, begin: &str) {
    wait_until(PATIENCE, || {
        let found = await_condition(lab, namespace, name, "Submitted", "SubmissionCompleted");
        let is_told = found["message"].as_str().is_some_and(|message| message.starts_with(begin));
        is_told.then_some(()).ok_or_else(|| found.to_string())
    });
}

#[test]
fn a_receipt_has_the_digest_of_the_received_file_and_is_mailed_once() {
    let lab = Lab::shared();
    let course = lab.course("subrec");
    let (namespace, server) = ("tenant-subrec", ExamServer::start());
    server.set("up", Answer::Body(201, ""));
    // Nothing listens at this port.
    let broken =
        "integrations: {mail: {transport: smtp, host: 127.0.0.1, port: 1, tls: none, from: a@example.org}}\n";
    let daemon = course.daemon(&format!("{}{broken}", config()));
    lab.apply(&requested("subrec", &server.url("up")));
    let mut uploader = Uploader::new(&lab, namespace);
    let object = uploader.await_upload("exam");
    let receipts = server.receipts("up");
    assert_eq!(receipts.len(), 1, "{receipts:?}");
    let receipt = &receipts[0];
    assert_eq!((&receipt["name"], receipt["size"].as_i64() > Some(100)), (&json!("exam.zip"), true));
    assert_eq!(object["status"]["automation"]["submissionReceipt"], *receipt);
    let failed = "the content was uploaded; the receipt is not sent yet: the mail server 127.0.0.1:1 cannot be reached: ";
    await_message(&lab, namespace, "exam", failed);
    lab.await_event(namespace, "exam", "MailServerUnreachable: ");
    drop(daemon);

    let folder = tempfile::tempdir().expect("a folder");
    let working = format!(
        "{}integrations: {{mail: {{transport: file, folder: \"{}\", from: labs@example.org}}}}\n",
        config(),
        folder.path().display()
    );
    let daemon = course.daemon(&working);
    let sent = "the content was uploaded; the receipt was sent";
    await_message(&lab, namespace, "exam", sent);
    let record = "/metadata/annotations/crownlabs.polito.it~1mailed-submission-receipt";
    let time = object["status"]["automation"]["submissionTime"].as_str().expect("a time");
    lab.await_value("instances", namespace, "exam", record, time);
    let digest = receipt["sha256"].as_str().expect("a digest");
    let arrived = mails(folder.path());
    assert_eq!(arrived.len(), 1, "{arrived:?}");
    let text = &arrived[0].1;
    assert!(text.contains("To: subrec@example.org\r\n") && text.contains(digest), "{text}");
    drop(daemon);

    // After a restart, another upload, whose image leaves no receipt, causes the only further writes.
    let _daemon = course.daemon(&working);
    uploader.without_receipts();
    lab.apply(&requested("subrec", &server.url("up")).replace("name: exam,", "name: other,"));
    let other = uploader.await_upload("other");
    assert_eq!(other["status"]["automation"]["submissionReceipt"], Value::Null);
    let condition = await_condition(&lab, namespace, "other", "Submitted", "SubmissionCompleted");
    assert_eq!(condition["message"], "the content was uploaded");
    assert_eq!(
        (mails(folder.path()).len(), server.uploads("up").len(), created_jobs(&lab, namespace)),
        (1, 2, 2)
    );
}

/// Runs the script of the image with these variables. Returns whether it succeeds, and the last line of its errors.
fn upload(variables: &[(&str, &str)]) -> (bool, String) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("images/uploader/upload.sh");
    let mut command = Command::new("sh");
    command.arg(script).env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    let output = command.envs(variables.iter().copied()).output().expect("a shell");
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.success(), errors.lines().last().unwrap_or_default().to_owned())
}

#[test]
fn a_failed_upload_leaves_no_receipt() {
    let (server, folder) = (ExamServer::start(), tempfile::tempdir().expect("a folder"));
    server.set("up", Answer::Body(200, ""));
    server.set("moved", Answer::Redirect("up"));
    server.set("full", Answer::Body(507, ""));
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (data, empty, log) = (path("data"), path("empty"), path("log"));
    std::fs::create_dir(&data).expect("a folder");
    std::fs::create_dir(&empty).expect("a folder");
    std::fs::write(format!("{data}/answers.txt"), "42\n").expect("written");
    let [up, moved, full] = ["up", "moved", "full"].map(|path| server.url(path));
    for (source, destination, name, said) in [
        (&data, moved.as_str(), "exam", "the server rejected exam.zip: HTTP status 302"),
        (&data, full.as_str(), "exam", "the server rejected exam.zip: HTTP status 507"),
        (&data, "http://127.0.0.1:1/", "exam", "the server did not answer (HTTP status 000)"),
        (&data, up.as_str(), "", "the variable FILENAME is missing"),
        (
            &data,
            up.as_str(),
            "a/b",
            "FILENAME may contain only letters, digits, dots, dashes and underscores: a/b",
        ),
        (&empty, up.as_str(), "exam", &format!("{empty} cannot be packed; zip also fails if it is empty")),
    ] {
        let variables = [
            ("SOURCE_PATH", source.as_str()),
            ("DESTINATION_URL", destination),
            ("FILENAME", name),
            ("TERMINATION_LOG", log.as_str()),
        ];
        assert_eq!(upload(&variables), (false, format!("uploader: {said}")));
    }
    assert_eq!((server.uploads("up").len(), Path::new(&log).exists()), (0, false));
    // A receipt that cannot be written does not fail the upload, which would be repeated.
    let missing = path("missing/log");
    let variables = [
        ("SOURCE_PATH", data.as_str()),
        ("DESTINATION_URL", up.as_str()),
        ("FILENAME", "exam"),
        ("TERMINATION_LOG", missing.as_str()),
    ];
    let said = format!("uploader: the receipt cannot be written to {missing}");
    assert_eq!(upload(&variables), (true, said));
    assert_eq!(server.uploads("up"), ["exam.zip"]);
}
