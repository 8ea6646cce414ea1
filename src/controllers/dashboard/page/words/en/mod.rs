//! English.

mod states;

use super::{Unit, Words};
use crate::api::instance_snapshot::SnapshotPhase;
use crate::api::promise::End;
use crate::api::public_key::PublicKeyError;
use crate::api::quota::Refusal;
use crate::api::usage::Measure;
use crate::api::why::Because;
use crate::controllers::dashboard::page::standing::Standing;
use crate::controllers::dashboard::page::view::Done;

pub const WORDS: Words = Words {
    skip: "Skip to the content",
    pages: "Pages",
    home: "My machines",
    courses: "Courses",
    account: "Account",
    log_out: "Log out",
    help: "Help",
    languages: "Language",
    reload: "Reload",
    not_live: "Not live: the connection is broken and is being made again.",
    no_scripts: "Without JavaScript this page does not change by itself.",
    live_absent: "This page does not change by itself: live updates are not part of this installation.",
    live_full: "Many people are here now, so this page does not change by itself.",
    old: "The laboratory does not answer. Nothing can be changed until it does. This is what was known",
    details: "What the laboratory says",
    done: |done| match done {
        Done::Created => "The machine is being made. Connect appears here as soon as it is ready.",
        Done::Started => "The machine is starting.",
        Done::Stopped => "The machine is shutting down.",
        Done::Kept => "The machine counts as used now.",
        Done::Deleted => "The machine is being deleted.",
        Done::Renamed => "The machine has its new name.",
        Done::Exposed => "The port is being made public.",
        Done::Unexposed => "The port is not public any more.",
        Done::Saved => "The image is being made.",
        Done::Joined => "You are in the course. Its machines appear in a moment.",
        Done::Asked => "You have asked to join. A manager of the course decides.",
        Done::Left => "You are not in the course any more.",
        Done::KeyAdded => "The key is added. Machines that exist do not get it.",
        Done::KeyRemoved => "The key is removed.",
    },

    ago: |unit, count| match unit {
        Unit::Moments => "just now".to_owned(),
        _ => format!("{} ago", span(unit, count)),
    },
    in_time: |unit, count| match unit {
        Unit::Moments => "in less than a minute".to_owned(),
        _ => format!("in {}", span(unit, count)),
    },
    weekdays: ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"],
    months: [
        "January",
        "February",
        "March",
        "April",
        "May",
        "June",
        "July",
        "August",
        "September",
        "October",
        "November",
        "December",
    ],
    duration: |unit, count| match unit {
        's' => plural(count, "second", "seconds"),
        'm' => plural(count, "minute", "minutes"),
        'h' => plural(count, "hour", "hours"),
        _ => plural(count, "day", "days"),
    },
    measure: |measure| match measure {
        Measure::Instances => "Machines".to_owned(),
        Measure::Cpu => "Processor cores".to_owned(),
        Measure::Memory => "Memory".to_owned(),
        Measure::Disk => "Disk".to_owned(),
        Measure::Other(name) => name.clone(),
    },
    amount: |measure, amount| match measure {
        Measure::Instances => format!("{amount} {}", if amount == "1" { "machine" } else { "machines" }),
        Measure::Cpu => format!("{amount} {}", if amount == "1" { "core" } else { "cores" }),
        Measure::Memory => format!("{amount} of memory"),
        Measure::Disk => format!("{amount} of disk"),
        Measure::Other(name) => format!("{amount} {name}"),
    },
    decimal: '.',
    share: |part, whole| format!("{part} of {whole}"),
    unlimited: "no limit",

    standing: |standing| match standing {
        Standing::New => "New",
        Standing::Importing => "Preparing",
        Standing::Starting => "Starting",
        Standing::Running => "Almost ready",
        Standing::Ready => "Ready",
        Standing::Stopping => "Stopping",
        Standing::Off => "Off",
        Standing::Quota => "Waiting for quota",
        Standing::Failed => "Failed",
        Standing::Blocked => "Cannot be made",
        Standing::Deleting => "Being deleted",
        Standing::Unknown => "Unknown",
    },
    because: |standing| match standing {
        Standing::New => "The laboratory has not looked at it yet.",
        Standing::Importing => "Its disk is being filled. This takes a few minutes, once.",
        Standing::Starting => "It is starting.",
        Standing::Running => "It runs, and its system is still starting.",
        Standing::Ready => "It can be used.",
        Standing::Stopping => "It is shutting down.",
        Standing::Off => "It is off. Its disk is kept.",
        Standing::Quota => {
            "Other machines use all that you may use now. It starts as soon as one of them is stopped."
        }
        Standing::Failed => "Something went wrong.",
        Standing::Blocked => "A part of it cannot be made.",
        Standing::Deleting => "It is being removed.",
        Standing::Unknown => "Its state is not known to this page.",
    },
    of_course: "in",
    connect: "Connect",
    start: "Start",
    stop: "Stop",
    keep: "Keep it",
    delete: "Delete",
    delete_question: |name| format!("Delete {name}?"),
    delete_data: "All data on its disk is lost. MyDrive stays.",
    delete_yes: "Delete with all data",
    until: |until, because| match (until, because) {
        (Some(End::Stopped), Because::Unused) => "Nobody uses it: it is stopped",
        (Some(End::Deleted), Because::Unused) => "Nobody uses it: it is deleted with all data",
        (None, Because::Unused) => "Nobody uses it: it is stopped or deleted",
        (_, Because::Off) => "It stays off: it is deleted with all data",
        (_, Because::Age) => "It has reached its age: it is deleted with all data",
    },
    warning_due: |until, because| match (until, because) {
        (Some(End::Stopped), Because::Unused) => {
            "Before it is stopped because nobody uses it, a warning comes"
        }
        (None, Because::Unused) => "Before it is stopped or deleted because nobody uses it, a warning comes",
        (_, Because::Unused) => "Before it is deleted because nobody uses it, a warning comes",
        (_, Because::Off) => "Before it is deleted because it stays off, a warning comes",
        (_, Because::Age) => "Before it is deleted for its age, a warning comes",
    },
    keep_hint: "Counts as a use now, so that the time begins again.",
    no_machine: "You have no machine yet.",
    personal: "Personal workspace",
    no_course_name: "Other machines",

    new_machine: "Start a new machine",
    no_templates_here: "This course has no machines yet.",
    left: "You can still use",
    keeps_disk: "Can be stopped and started again; its disk is kept",
    loses_disk: "Its data is gone when it ends; keep your work in MyDrive",
    refusal,
    too_many_machines: |most| {
        format!("You have as many machines as you may have, {most}: delete one before you start another.")
    },
    used_by: "In use by",
    no_right: "You may not do this here.",
    no_namespace: "Your space in the laboratory is not there yet.",
    away: "The laboratory does not answer now.",

    why: "Why it is not ready",
    warnings: "Warnings",
    next: "What happens next",
    next_nothing: "Nothing: this machine is neither stopped nor deleted by itself.",
    template_says: |until, because, time| match (until, because) {
        (End::Stopped, Because::Unused) => format!("It is stopped after {time} without use."),
        (_, Because::Unused) => format!("It is deleted after {time} without use."),
        (_, Because::Off) => format!("It is deleted after {time} off."),
        (_, Because::Age) => format!("It is deleted at the age of {time}."),
    },
    warned: |count| {
        format!("You were warned {}, the last time", plural(count.unsigned_abs(), "time", "times"))
    },
    pending_change: "The laboratory has not acted on the last change yet.",
    environments: "Parts of this machine",
    open: "Open",
    ssh: "By SSH",
    ssh_hint: "Needs a key in your account.",
    web_ssh: "Open a terminal here",
    no_ssh_yet: "The address is known once it runs.",
    ports: "Public ports",
    ports_hint: "Everybody on the Internet can reach a public port.",
    no_ports: "No port is public.",
    port_line: |inside| format!("leads to port {inside} of the machine"),
    port_soon: "A public port is being assigned.",
    remove: "Remove",
    add: "Add",
    add_port: "Make a port public",
    port_name: "Name",
    port_name_hint: "Up to 15 small letters, digits and dashes, such as web",
    port_inside: "Port of the machine",
    port_outside: "Public port",
    port_outside_hint: "0 means any that is free",
    protocol: "Protocol",
    name: "Name",
    rename: "Rename",
    rename_hint: "At most 200 characters",
    save: "Save as image",
    save_hint: "Makes an image of the disk, from which your course can make new machines.",
    save_running: "Stop the machine first.",
    image_name: "Name of the image",
    image_name_hint: "Small letters and digits, with single dots, dashes or underscores between them",
    save_button: "Save as image",
    snapshots: "Images of this machine",
    snapshot: |phase| match phase {
        SnapshotPhase::Pending | SnapshotPhase::Unset => "Waiting",
        SnapshotPhase::Processing => "Being made",
        SnapshotPhase::Completed => "Done",
        SnapshotPhase::Failed => "Failed",
        SnapshotPhase::Other(_) => "Unknown",
    },
    facts: "About this machine",
    template: "Made from",
    course: "Course",
    created: "Created",
    identity: "Identity",
    ready_in: "First ready after",
    last_use: "Last known use",
    enders: "Who may stop or delete it",
    you: "you",
    managers: "the managers of its course",
    administrators: "administrators",
    of_tenant: "Belongs to",
    state_since: "In this state since",

    my_courses: "My courses",
    other_courses: "Courses that you can join",
    no_courses: "You are in no course yet.",
    no_other_courses: "There is no other course that you can join by yourself.",
    role_user: "You take this course.",
    role_manager: "You manage this course.",
    role_candidate: "You have asked to join. A manager of the course decides.",
    failing: "The laboratory cannot enrol you: the course does not exist, or does not accept it.",
    join: "Join",
    join_hint: "You are in at once.",
    ask: "Ask to join",
    ask_hint: "A manager of the course decides.",
    leave: "Leave",
    withdraw: "Withdraw",
    leave_question: "Your machines of this course stay, but you cannot start new ones.",
    gives: "Gives you",

    person: "You",
    email: "E-mail",
    user_name: "User name",
    keys: "SSH keys",
    keys_hint: "With them you log in to your machines. A machine gets the keys when it is made.",
    no_keys: "You have no key yet.",
    key_error: |error| match error {
        PublicKeyError::LineBreak => "A key is one line: add each key by itself.",
        PublicKeyError::TooLong => "This is longer than any key.",
        PublicKeyError::Unreadable => {
            "This is no public key: it begins with a word such as ssh-ed25519, and is in a file that ends with .pub."
        }
        PublicKeyError::Unsupported => "Keys of this kind are not accepted: use Ed25519, ECDSA or RSA.",
    },
    key_unused: "Not used: there are too many keys before it.",
    key_without_name: "Key without a comment",
    fingerprint: "Fingerprint",
    add_key: "Add a key",
    key_label: "Public key",
    key_hint: "The content of a file such as ~/.ssh/id_ed25519.pub. Never a private key.",
    quota: "What you use",
    quota_all: "All courses together",
    quota_of: |course| format!("What you use of {course}"),
    used: "Used",
    granted: "Granted",
    what: "What",
    drive: "MyDrive",
    drive_hint: "Your own folder, which is in your machines at /media/mydrive and outlives all of them.",
    drive_size: |size| format!("It holds {size}."),
    drive_open: "Start a machine to look at it",
    drive_is_open: "Its machine is there",

    states: states::STATES,
};

fn plural(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

fn span(unit: Unit, count: i64) -> String {
    let count = count.unsigned_abs();
    match unit {
        Unit::Days => plural(count, "day", "days"),
        Unit::Hours => plural(count, "hour", "hours"),
        Unit::Minutes => plural(count, "minute", "minutes"),
        Unit::Moments => "a moment".to_owned(),
    }
}

fn refusal(refusal: &Refusal) -> String {
    match refusal {
        Refusal::NoTemplate(_) => "What it is made from is gone: it cannot be started.".to_owned(),
        Refusal::WritesForeignVolume { volume, .. } => {
            format!("It would write to the volume {volume} of somebody else: set readOnly.")
        }
        Refusal::OfAnotherTenant { .. } => "It belongs to somebody else.".to_owned(),
        Refusal::NoTenant(_) => "You are not known to the laboratory.".to_owned(),
        Refusal::NotEnrolled { workspace, .. } => format!("You are not in the course {workspace}."),
        Refusal::NoWorkspace(workspace) => format!("The course {workspace} does not exist."),
        Refusal::NoPersonalWorkspace(_) => "You have no personal workspace.".to_owned(),
        Refusal::Elsewhere { namespace, .. } => format!("It would have to be in {namespace}."),
        Refusal::Exceeded(shares) => {
            let over = super::list(&WORDS, shares, |used, limit| format!("{used} instead of {limit}"));
            format!("With it you would use more than you may: {over}.")
        }
    }
}
