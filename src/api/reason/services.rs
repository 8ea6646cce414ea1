//! Reasons of failures outside of the control loops: Keycloak, the mail server, CRDs that are not installed.

use super::{Reason, reasons};

reasons! { SERVICES, SERVICES_ROWS;
    /// A loop waits for CRDs that are not installed, or does without them.
    WAITING_FOR_CRD = "WaitingForCRD" on [Lease] in [Event] by Administrator:
        "Install what the message names, or switch the loop off. It uses them as soon as they are there.";

    /// Keycloak has an account of the Tenant's name with another e-mail address.
    ACCOUNT_EXISTS = "AccountExists" on [Tenant] in [Ready, Reconciled, AccountExists, Event] by Administrator:
        "Rename or delete one of the two; or, if it is the Tenant's, set the annotation that the message names.";
    /// There is no result from Keycloak yet.
    KEYCLOAK_PENDING = "KeycloakPending" on [Tenant, Workspace] in [Ready, Reconciled, Event] by Nobody: "Wait.";
    /// There is no connection to Keycloak.
    KEYCLOAK_UNREACHABLE = "KeycloakUnreachable" on [Tenant, Workspace] in [Ready, Reconciled, Event] by Administrator:
        "Check `integrations.keycloak.url`, `caFile`, the network policies, and whether Keycloak runs.";
    /// Keycloak answers that it cannot now.
    KEYCLOAK_UNAVAILABLE = "KeycloakUnavailable" on [Tenant, Workspace] in [Ready, Reconciled, Event] by Administrator:
        "Wait; if it lasts, look at the log of Keycloak.";
    /// Keycloak does not accept the client, or the user.
    KEYCLOAK_UNAUTHORIZED = "KeycloakUnauthorized" on [Tenant, Workspace] in [Ready, Reconciled, Event] by Administrator:
        "Check `clientId`, the content of `clientSecretFile`, and that the client has a service account; or `username`, the content \
         of `passwordFile`, and `loginRealm`.";
    /// The service account, or the user, lacks a role.
    KEYCLOAK_FORBIDDEN = "KeycloakForbidden" on [Tenant, Workspace] in [Ready, Reconciled, Event] by Administrator:
        "Give the account the role that the message names.";
    /// The realm, the client with the roles, or a role does not exist.
    KEYCLOAK_NOT_FOUND = "KeycloakNotFound" on [Tenant, Workspace] in [Ready, Reconciled, Event] by Administrator:
        "Check `realm` and `rolesClientId`. A role appears once its Workspace is reconciled.";
    /// Another account has this e-mail address, or another role this name.
    KEYCLOAK_CONFLICT = "KeycloakConflict" on [Tenant, Workspace] in [Ready, Reconciled, Event] by Administrator:
        "Correct `spec.email` of the Tenant, or the other account.";
    /// Keycloak refuses what it was asked for, for example an e-mail address that it does not accept.
    KEYCLOAK_REJECTED = "KeycloakRejected" on [Tenant, Workspace] in [Ready, Reconciled, Event] by Administrator:
        "The message is Keycloak's: mostly a name or address of the Tenant is to be corrected.";
    /// Keycloak could not send the mail with the link.
    KEYCLOAK_MAIL_NOT_SENT = "KeycloakMailNotSent" on [Tenant] in [Ready, Reconciled, Event] by Administrator:
        "Check the e-mail settings of the realm, and the mail server.";
    /// What answers is not Keycloak, or not as it is known.
    KEYCLOAK_BAD_ANSWER = "KeycloakBadAnswer" on [Tenant, Workspace] in [Ready, Reconciled, Event] by Administrator:
        "Check `url` and `compatibilityMode`, and what is in front of Keycloak.";
    /// The file with the client's secret, or the user's password, cannot be used.
    KEYCLOAK_SECRET_UNREADABLE = "KeycloakSecretUnreadable" on [Tenant, Workspace]
        in [Ready, Reconciled, Event] by Administrator: "Check `integrations.keycloak.clientSecretFile` and `passwordFile`.";
    /// The work in Keycloak panicked. Other objects are not affected.
    KEYCLOAK_PANICKED = "KeycloakPanicked" on [Tenant, Workspace] in [Ready, Reconciled, Event] by Administrator:
        "A defect of the daemon: report it with the log.";
    /// The lease was lost before the request was sent. The next leader sends it, so no object shows this.
    KEYCLOAK_NOT_LEADER = "KeycloakNotLeader" on [] in [] by Nobody: "Nothing.";

    /// The list is what the registry offered when it was last read.
    REGISTRY_READ = "RegistryRead" on [ImageList] in [Stale, Event] by Nobody: "Nothing.";
    /// The registry offers nothing, and offered something before. The list stays until three queries in a row say so.
    REGISTRY_EMPTY = "RegistryEmpty" on [ImageList] in [Stale, Event] by Administrator:
        "Nothing if its images were deleted. Else look at what the registry has lost, and at `project` and the rights of `username`.";
    /// The registry does not answer, or too late.
    REGISTRY_UNREACHABLE = "RegistryUnreachable" on [ImageList] in [Stale, Event] by Administrator:
        "Check `url` and `caFile` of the registry, the network policies, and whether the registry runs.";
    /// The registry does not accept the login, or asks for one.
    REGISTRY_REFUSED = "RegistryRefused" on [ImageList] in [Stale, Event] by Administrator:
        "Check `username`, the content of `passwordFile`, and that this user may read the catalogue.";
    /// The registry answers with an error.
    REGISTRY_FAILED = "RegistryFailed" on [ImageList] in [Stale, Event] by Administrator:
        "Wait; if it lasts, look at the log of the registry.";
    /// What answers is no registry, or its answers are not whole.
    REGISTRY_BAD_ANSWER = "RegistryBadAnswer" on [ImageList] in [Stale, Event] by Administrator:
        "Check `url` and `type` of the registry, and what is in front of it.";
    /// The registry leads to another server, which gets neither requests nor the login.
    REGISTRY_ELSEWHERE = "RegistryElsewhere" on [ImageList] in [Stale, Event] by Administrator:
        "Correct `url`; if it is the server that issues tokens, and is yours, name it in `tokenUrl`.";
    /// A key of the registry, or a file that it names, cannot be used.
    REGISTRY_SETTINGS_INVALID = "RegistrySettingsInvalid" on [ImageList] in [Stale, Event] by Administrator:
        "Correct the key or file that the message names.";
    /// The registry has more than an `ImageList` may hold. The list stays as it was.
    IMAGE_LIST_TOO_LARGE = "ImageListTooLarge" on [ImageList] in [Stale, Event] by Administrator:
        "Delete tags that nobody uses, or make several lists, each of one `project`.";
    /// The API server does not take the list.
    IMAGE_LIST_NOT_WRITTEN = "ImageListNotWritten" on [ImageList] in [Stale, Event] by Administrator:
        "The message is the API server's.";

    /// The lease was lost before the mail was sent. The next leader sends it: only the metric `crownlabs_mails_total` shows
    /// this.
    MAIL_NOT_LEADER = "MailNotLeader" on [] in [] by Nobody: "Nothing.";
    /// The Tenant's e-mail address is not one.
    MAIL_RECIPIENT_INVALID = "MailRecipientInvalid" on [Instance]
        in [Inactive, Abandoned, Expiring, Event] by Administrator: "Correct `spec.email` of the Tenant.";
    /// The template of this mail cannot be used. Other mails are not affected.
    MAIL_TEMPLATE_INVALID = "MailTemplateInvalid" on [Instance]
        in [Inactive, Abandoned, Expiring, Event] by Administrator:
        "Correct the file in `integrations.mail.templateDir` that the message names.";
    /// The settings of the mail server, its password or its authorities cannot be used.
    MAIL_SETTINGS_INVALID = "MailSettingsInvalid" on [Instance]
        in [Inactive, Abandoned, Expiring, Event] by Administrator: "Correct the file that the message names.";
    /// There is no connection to the mail server, or it broke.
    MAIL_SERVER_UNREACHABLE = "MailServerUnreachable" on [Instance]
        in [Inactive, Abandoned, Expiring, Event] by Administrator:
        "Check `host`, `port` and `tls` of `integrations.mail`, and the network policies.";
    /// The mail server has not accepted the mail in time. It may have it all the same.
    MAIL_TIMEOUT = "MailTimeout" on [Instance] in [Inactive, Abandoned, Expiring, Event] by Administrator:
        "If it lasts, look at the mail server, or raise `integrations.mail.timeout`.";
    /// The certificate of the mail server is not accepted.
    MAIL_CERTIFICATE_REFUSED = "MailCertificateRefused" on [Instance]
        in [Inactive, Abandoned, Expiring, Event] by Administrator:
        "Check `host` and `caFile` of `integrations.mail`, and that the certificate is valid.";
    /// The mail server refuses the login.
    MAIL_LOGIN_REFUSED = "MailLoginRefused" on [Instance] in [Inactive, Abandoned, Expiring, Event] by Administrator:
        "Check `username` and the content of `passwordFile`, or `smtp-config.yaml`.";
    /// The mail server cannot take the mail now.
    MAIL_SERVER_UNAVAILABLE = "MailServerUnavailable" on [Instance]
        in [Inactive, Abandoned, Expiring, Event] by Administrator: "Wait; if it lasts, look at the mail server.";
    /// The mail server refuses the connection.
    MAIL_CONNECTION_REFUSED = "MailConnectionRefused" on [Instance]
        in [Inactive, Abandoned, Expiring, Event] by Administrator: "Allow the addresses of the pods at the mail server.";
    /// The mail server refuses the sender.
    MAIL_SENDER_REFUSED = "MailSenderRefused" on [Instance] in [Inactive, Abandoned, Expiring, Event] by Administrator:
        "Correct `integrations.mail.from`, or allow it for the login.";
    /// The mail server refuses the address of the Tenant.
    MAIL_RECIPIENT_REFUSED = "MailRecipientRefused" on [Instance]
        in [Inactive, Abandoned, Expiring, Event] by Administrator: "Correct `spec.email` of the Tenant.";
    /// The mail server refuses the mail as a whole.
    MAIL_REFUSED = "MailRefused" on [Instance] in [Inactive, Abandoned, Expiring, Event] by Administrator:
        "The message is the server's: for example a filter, or a limit of mails.";
    /// The mail server refuses the mails to the Tenant for good, also one without any text of the user. The managers of the
    /// course get a mail.
    MAIL_UNDELIVERABLE = "MailUndeliverable" on [Instance] in [Inactive, Abandoned, Expiring, Event] by Administrator:
        "Correct `spec.email` of the Tenant, or see what the server says in the message.";
    /// The mail cannot be written into the Maildir folder.
    MAIL_FOLDER_UNUSABLE = "MailFolderUnusable" on [Instance] in [Inactive, Abandoned, Expiring, Event] by Administrator:
        "Check the rights and the room of `integrations.mail.folder`.";
}
