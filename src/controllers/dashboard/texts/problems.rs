//! Why an action failed.

use super::template::table_key;
use crate::api::exposed_ports::PortFault;
use crate::api::public_key::PublicKeyError;

table_key! {
    /// Why an action failed.
    #[derive(serde::Serialize)]
    pub enum Problem {
        /// The session expired.
        SessionOver,
        /// The object has changed.
        Changed,
        /// The object does not exist.
        Gone,
        /// The name is in use.
        Taken,
        /// The user could not be determined, the API server does not answer, or too many other forms were processed, so
        /// nothing was tried.
        NotNow,
        /// The API server did not confirm the change: a write that timed out may be done.
        Unknown,
        /// The API server or a webhook rejected the change; its message follows.
        Refused,
        /// The namespace has the maximum number of objects.
        QuotaFull,
        /// A field that the page itself writes is missing or invalid.
        Form,
        /// The text is not an SSH public key.
        Key,
        /// The text is a private key.
        KeyPrivate,
        /// The text is empty.
        KeyEmpty,
        /// The text is a public key in the format of RFC 4716.
        KeyRfc4716,
        /// The text is a public key in the PEM format.
        KeyPem,
        /// The text is the fingerprint of a key.
        KeyFingerprint,
        /// The text is a key with options before it.
        KeyOptions,
        /// The text has more than one line.
        KeyLineBreak,
        /// The text is longer than any key.
        KeyTooLong,
        /// The type of the key is not supported.
        KeyUnsupported,
        /// The key already exists.
        KnownKey,
        /// A port is not a number from 1 to 65535.
        Port,
        /// A public port is not a number from 0 to 65535.
        PublicPort,
        /// The name of a port is invalid.
        PortName,
        /// Another port of the machine has this name.
        PortNameTaken,
        /// Another public port leads to this port of the machine.
        PortTargetTaken,
        /// Another port has this public port.
        PublicPortTaken,
        /// A port has another protocol than TCP and UDP, or an invalid number or name.
        PortInvalid,
        /// A display name is too long.
        Name,
        /// Only managers enrol users in the course.
        Closed,
        /// The title of an Announcement is empty, too long, or has control characters.
        AnnouncementTitle,
        /// The text of an Announcement is empty, too long, or has control characters.
        AnnouncementText,
        /// The days of an Announcement are not a number from 1 to 365.
        AnnouncementDays,
        /// The name of a new course is invalid.
        CourseName,
        /// The title of a course is empty, too long, or has control characters.
        CourseTitle,
        /// The cores of a quota are not an amount.
        QuotaCpu,
        /// The memory of a quota is not an amount.
        QuotaMemory,
        /// The disk of a quota is not an amount.
        QuotaDisk,
        /// The machines of a quota are not a number from 1 to 10000.
        QuotaMachines,
        /// The same for the quota of a personal workspace: its cores.
        OwnCpu,
        /// Its memory.
        OwnMemory,
        /// Its disk.
        OwnDisk,
        /// Its machines.
        OwnMachines,
        /// The name of the course of an enrolment is invalid.
        EnrolCourse,
        /// A user name is invalid.
        PersonUser,
        /// A user name is too long.
        PersonUserLong,
        /// The name of a person is too long, or has control characters.
        PersonName,
        /// A new person has no first or no last name.
        PersonNoName,
        /// An e-mail address is invalid.
        PersonEmail,
        /// A new person has no e-mail address.
        PersonNoEmail,
        /// The Tenant has another e-mail address.
        PersonOther,
        /// A role does not exist.
        PersonRole,
        /// Users do not change their own role.
        PersonSelf,
        /// The Tenant is being deleted.
        PersonLeaving,
        /// The person is in the course already, with another role.
        PersonEnrolled,
        /// The Tenant does not exist.
        PersonUnknown,
        /// A list of people is empty.
        ListEmpty,
        /// A list of people is too long.
        ListLong,
        /// A list of people has no column with user names.
        ListNoUser,
        /// A list of people has an unknown column, or one twice.
        ListColumns,
        /// A line of a list has more or fewer fields than the first one.
        ListFields,
        /// A quotation mark in a line of a list is wrong.
        ListQuote,
        /// A line of a list is not in UTF-8.
        ListEncoding,
        /// A list names a user twice.
        ListTwice,
        /// A list has an e-mail address twice.
        ListEmailTwice,
        /// The title of a shared volume is empty or too long, or has control characters.
        VolumeTitle,
        /// The size of a shared volume is not a whole number from 1 to 10,240.
        VolumeSize,
        /// The user name of a person with whom a machine is to be shared is invalid.
        ShareUser,
        /// The person with whom a machine is to be shared is not in its course.
        ShareOutsider,
        /// The person with whom a machine is to be shared is its owner.
        ShareOwner,
        /// A machine is shared with as many people as possible.
        ShareFull,
    }
}

/// The problems with a field: its name, and the id of its element.
const FIELDS: &[(Problem, (&str, &str))] = &[
    (Problem::Key, ("key", "key")),
    (Problem::KeyPrivate, ("key", "key")),
    (Problem::KeyEmpty, ("key", "key")),
    (Problem::KeyRfc4716, ("key", "key")),
    (Problem::KeyPem, ("key", "key")),
    (Problem::KeyFingerprint, ("key", "key")),
    (Problem::KeyOptions, ("key", "key")),
    (Problem::KeyLineBreak, ("key", "key")),
    (Problem::KeyTooLong, ("key", "key")),
    (Problem::KeyUnsupported, ("key", "key")),
    (Problem::KnownKey, ("key", "key")),
    (Problem::Port, ("targetPort", "port-inside")),
    (Problem::PublicPort, ("port", "port-outside")),
    (Problem::PublicPortTaken, ("port", "port-outside")),
    (Problem::PortTargetTaken, ("targetPort", "port-inside")),
    (Problem::PortName, ("name", "port-name")),
    (Problem::PortNameTaken, ("name", "port-name")),
    (Problem::Name, ("prettyName", "pretty-name")),
    (Problem::AnnouncementTitle, ("title", "announcement-title")),
    (Problem::AnnouncementText, ("text", "announcement-text")),
    (Problem::AnnouncementDays, ("days", "announcement-days")),
    (Problem::CourseName, ("course", "course-name")),
    (Problem::CourseTitle, ("title", "course-title")),
    (Problem::QuotaCpu, ("cpu", "quota-cpu")),
    (Problem::QuotaMemory, ("memory", "quota-memory")),
    (Problem::QuotaDisk, ("disk", "quota-disk")),
    (Problem::QuotaMachines, ("instances", "quota-instances")),
    (Problem::OwnCpu, ("cpu", "own-cpu")),
    (Problem::OwnMemory, ("memory", "own-memory")),
    (Problem::OwnDisk, ("disk", "own-disk")),
    (Problem::OwnMachines, ("instances", "own-instances")),
    (Problem::EnrolCourse, ("course", "enrol-course")),
    (Problem::PersonUser, ("user", "person-user")),
    (Problem::PersonUserLong, ("user", "person-user")),
    (Problem::PersonLeaving, ("user", "person-user")),
    (Problem::PersonEnrolled, ("user", "person-user")),
    (Problem::PersonName, ("first", "person-first")),
    (Problem::PersonNoName, ("first", "person-first")),
    (Problem::PersonEmail, ("email", "person-email")),
    (Problem::PersonNoEmail, ("email", "person-email")),
    (Problem::PersonOther, ("email", "person-email")),
    (Problem::PersonRole, ("role", "person-role")),
    (Problem::VolumeTitle, ("prettyName", "volume-title")),
    (Problem::VolumeSize, ("size", "volume-size")),
    (Problem::ShareUser, ("user", "share-user")),
    (Problem::ShareOutsider, ("user", "share-user")),
    (Problem::ShareOwner, ("user", "share-user")),
];

impl Problem {
    /// Returns the field that the problem is about; `None` if it is about the whole form.
    pub fn field(self) -> Option<(&'static str, &'static str)> {
        FIELDS.iter().find(|(problem, _)| *problem == self).map(|(_, field)| *field)
    }
}

impl From<&PortFault> for Problem {
    fn from(fault: &PortFault) -> Self {
        match fault {
            PortFault::NameTaken(_) => Self::PortNameTaken,
            PortFault::TargetTaken(_) => Self::PortTargetTaken,
            PortFault::PublicTaken(_) => Self::PublicPortTaken,
            PortFault::Protocol { .. } | PortFault::Number { .. } | PortFault::Name(_) => Self::PortInvalid,
        }
    }
}

impl From<PublicKeyError> for Problem {
    fn from(error: PublicKeyError) -> Self {
        match error {
            PublicKeyError::Unreadable => Self::Key,
            PublicKeyError::LineBreak => Self::KeyLineBreak,
            PublicKeyError::TooLong => Self::KeyTooLong,
            PublicKeyError::Unsupported => Self::KeyUnsupported,
        }
    }
}
