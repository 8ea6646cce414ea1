//! Reasons of failures outside the control loops: Keycloak, the mail server, CRDs that are not installed.

use super::{Reason, reasons};

reasons! { SERVICES, SERVICES_ROWS;
    /// A loop waits for CRDs that are not installed, or works without them.
    WAITING_FOR_CRD = "WaitingForCRD" on [Lease] in [Event] by Administrator:
        "Install the CRDs that the message names, or disable the loop. It uses them as soon as they are installed.";

    /// Keycloak has an account with the name of the Tenant and another e-mail address.
    ACCOUNT_EXISTS = "AccountExists" on [Tenant] in [Ready, Reconciled, Stalled, AccountExists, Event] by Administrator:
        "Rename or delete one of the two. If the account belongs to the Tenant, set the annotation that the message names.";
    /// There is no result from Keycloak yet.
    KEYCLOAK_PENDING = "KeycloakPending" on [Tenant, Workspace] in [Ready, Reconciled, Event] by Nobody: "Wait.";
    /// There is no connection to Keycloak.
    KEYCLOAK_UNREACHABLE = "KeycloakUnreachable" on [Tenant, Workspace] in [Ready, Reconciled, Event] by Administrator:
        "Check `integrations.keycloak.url`, `caFile`, the network policies, and whether Keycloak runs.";
    /// Keycloak answers that it is temporarily unavailable.
    KEYCLOAK_UNAVAILABLE = "KeycloakUnavailable" on [Tenant, Workspace] in [Ready, Reconciled, Event] by Administrator:
        "Wait; if it lasts, look at the log of Keycloak.";
    /// Keycloak does not accept the client, or the user.
    KEYCLOAK_UNAUTHORIZED = "KeycloakUnauthorized" on [Tenant, Workspace] in [Ready, Reconciled, Stalled, Event] by Administrator:
        "Check `clientId`, the content of `clientSecretFile`, and that the client has a service account; or `username`, the content \
         of `passwordFile`, and `loginRealm`.";
    /// The service account, or the user, lacks a role.
    KEYCLOAK_FORBIDDEN = "KeycloakForbidden" on [Tenant, Workspace] in [Ready, Reconciled, Stalled, Event] by Administrator:
        "Give the role in the message to the account.";
    /// The realm, the client with the roles, or a role does not exist.
    KEYCLOAK_NOT_FOUND = "KeycloakNotFound" on [Tenant, Workspace] in [Ready, Reconciled, Stalled, Event] by Administrator:
        "Check `realm` and `rolesClientId`. A role appears once its Workspace is reconciled.";
    /// Another account has this e-mail address, or another role has this name.
    KEYCLOAK_CONFLICT = "KeycloakConflict" on [Tenant, Workspace] in [Ready, Reconciled, Stalled, Event] by Administrator:
        "Correct `spec.email` of the Tenant, or the other account.";
    /// Keycloak rejects the request, for example because of an invalid e-mail address.
    KEYCLOAK_REJECTED = "KeycloakRejected" on [Tenant, Workspace] in [Ready, Reconciled, Stalled, Event] by Administrator:
        "The message comes from Keycloak: usually a name or address of the Tenant must be corrected.";
    /// Keycloak could not send the mail with the link.
    KEYCLOAK_MAIL_NOT_SENT = "KeycloakMailNotSent" on [Tenant] in [Ready, Reconciled, Stalled, Event] by Administrator:
        "Check the e-mail settings of the realm, and the mail server.";
    /// The answer does not come from Keycloak, or has an unknown form.
    KEYCLOAK_BAD_ANSWER = "KeycloakBadAnswer" on [Tenant, Workspace] in [Ready, Reconciled, Stalled, Event] by Administrator:
        "Check `url` and `compatibilityMode`, and any proxy in front of Keycloak.";
    /// The file with the client's secret, or the user's password, cannot be used.
    KEYCLOAK_SECRET_UNREADABLE = "KeycloakSecretUnreadable" on [Tenant, Workspace]
        in [Ready, Reconciled, Stalled, Event] by Administrator: "Check `integrations.keycloak.clientSecretFile` and `passwordFile`.";
    /// The work in Keycloak panicked. Other objects are not affected.
    KEYCLOAK_PANICKED = "KeycloakPanicked" on [Tenant, Workspace] in [Ready, Reconciled, Stalled, Event] by Administrator:
        "A defect of the daemon: report it with the log.";
    /// The lease was lost before the request was sent. The next leader sends it, so no object shows this.
    KEYCLOAK_NOT_LEADER = "KeycloakNotLeader" on [] in [] by Nobody: "Nothing.";

    /// The list is as the registry offered it at the last read.
    REGISTRY_READ = "RegistryRead" on [ImageList] in [Stale, Event] by Nobody: "Nothing.";
    /// The registry offers no images, but offered some before. The list stays until three queries in a row confirm
    /// it.
    REGISTRY_EMPTY = "RegistryEmpty" on [ImageList] in [Stale, Event] by Administrator:
        "Nothing if its images were deleted. Otherwise check whether the registry has lost data, and check `project` and the rights of `username`.";
    /// The registry does not answer in time.
    REGISTRY_UNREACHABLE = "RegistryUnreachable" on [ImageList] in [Stale, Event] by Administrator:
        "Check `url` and `caFile` of the registry, the network policies, and whether the registry runs.";
    /// The registry does not accept the login, or requires a login.
    REGISTRY_REFUSED = "RegistryRefused" on [ImageList] in [Stale, Event] by Administrator:
        "Check `username`, the content of `passwordFile`, and that this user may read the catalogue.";
    /// The registry answers with an error.
    REGISTRY_FAILED = "RegistryFailed" on [ImageList] in [Stale, Event] by Administrator:
        "Wait; if it lasts, look at the log of the registry.";
    /// The server is not a registry, or its answers are incomplete.
    REGISTRY_BAD_ANSWER = "RegistryBadAnswer" on [ImageList] in [Stale, Event] by Administrator:
        "Check `url` and `type` of the registry, and any proxy in front of it.";
    /// The registry refers to another server, which gets neither requests nor the login.
    REGISTRY_ELSEWHERE = "RegistryElsewhere" on [ImageList] in [Stale, Event] by Administrator:
        "Correct `url`. If the other server is your token server, set `tokenUrl` to it.";
    /// A key of the registry, or a file that a key names, is invalid.
    REGISTRY_SETTINGS_INVALID = "RegistrySettingsInvalid" on [ImageList] in [Stale, Event] by Administrator:
        "Correct the key or file that the message names.";
    /// The registry has more images than an `ImageList` may hold. The list is not changed.
    IMAGE_LIST_TOO_LARGE = "ImageListTooLarge" on [ImageList] in [Stale, Event] by Administrator:
        "Delete unused tags, or configure several lists, each for one `project`.";
    /// The API server rejects the list.
    IMAGE_LIST_NOT_WRITTEN = "ImageListNotWritten" on [ImageList] in [Stale, Event] by Administrator:
        "The message comes from the API server.";

    /// The lease was lost before the mail was sent. The next leader sends it. Only the metric
    /// `crownlabs_mails_total` shows this.
    MAIL_NOT_LEADER = "MailNotLeader" on [] in [] by Nobody: "Nothing.";
    /// The e-mail address of the Tenant is invalid.
    MAIL_RECIPIENT_INVALID = "MailRecipientInvalid" on [Instance]
        in [Inactive, Abandoned, Expiring, Event] by Administrator: "Correct `spec.email` of the Tenant.";
    /// The template of this mail is invalid. Other mails are not affected.
    MAIL_TEMPLATE_INVALID = "MailTemplateInvalid" on [Instance]
        in [Inactive, Abandoned, Expiring, Event] by Administrator:
        "Correct the file in `integrations.mail.templateDir` that the message names.";
    /// The settings of the mail server, its password or its certificate authorities are invalid.
    MAIL_SETTINGS_INVALID = "MailSettingsInvalid" on [Instance]
        in [Inactive, Abandoned, Expiring, Event] by Administrator: "Correct the file that the message names.";
    /// The connection to the mail server failed or was interrupted.
    MAIL_SERVER_UNREACHABLE = "MailServerUnreachable" on [Instance]
        in [Inactive, Abandoned, Expiring, Event] by Administrator:
        "Check `host`, `port` and `tls` of `integrations.mail`, and the network policies.";
    /// The mail server did not accept the mail in time. It may have received the mail.
    MAIL_TIMEOUT = "MailTimeout" on [Instance] in [Inactive, Abandoned, Expiring, Event] by Administrator:
        "If it lasts, look at the mail server, or raise `integrations.mail.timeout`.";
    /// The certificate of the mail server is rejected.
    MAIL_CERTIFICATE_REFUSED = "MailCertificateRefused" on [Instance]
        in [Inactive, Abandoned, Expiring, Event] by Administrator:
        "Check `host` and `caFile` of `integrations.mail`, and whether the certificate is valid.";
    /// The mail server rejects the login.
    MAIL_LOGIN_REFUSED = "MailLoginRefused" on [Instance] in [Inactive, Abandoned, Expiring, Event] by Administrator:
        "Check `username` and the content of `passwordFile`, or `smtp-config.yaml`.";
    /// The mail server cannot accept the mail at the moment.
    MAIL_SERVER_UNAVAILABLE = "MailServerUnavailable" on [Instance]
        in [Inactive, Abandoned, Expiring, Event] by Administrator: "Wait; if it lasts, look at the mail server.";
    /// The mail server rejects this installation: its connection, its name in EHLO, its network, or the amount of
    /// mail that it sends.
    MAIL_CONNECTION_REFUSED = "MailConnectionRefused" on [Instance]
        in [Inactive, Abandoned, Expiring, Event] by Administrator:
        "Allow the addresses of the pods at the mail server, or correct `ehloName`, `username` or `tls` of `integrations.mail`.";
    /// The mail server rejects the sender.
    MAIL_SENDER_REFUSED = "MailSenderRefused" on [Instance] in [Inactive, Abandoned, Expiring, Event] by Administrator:
        "Correct `integrations.mail.from`, or allow it for the login.";
    /// The mail server rejects the address of the Tenant.
    MAIL_RECIPIENT_REFUSED = "MailRecipientRefused" on [Instance]
        in [Inactive, Abandoned, Expiring, Event] by Administrator: "Correct `spec.email` of the Tenant.";
    /// The mail server rejects the mail as a whole.
    MAIL_REFUSED = "MailRefused" on [Instance] in [Inactive, Abandoned, Expiring, Event] by Administrator:
        "The message comes from the mail server: for example a filter or a limit for mails.";
    /// The mail server permanently rejects the mailbox of the Tenant, even for a mail without any text of the user.
    /// The managers of the course get a mail.
    MAIL_UNDELIVERABLE = "MailUndeliverable" on [Instance] in [Inactive, Abandoned, Expiring, Event] by Administrator:
        "Correct `spec.email` of the Tenant, or read the server's answer in the message.";
    /// The mail cannot be written to the Maildir folder.
    MAIL_FOLDER_UNUSABLE = "MailFolderUnusable" on [Instance] in [Inactive, Abandoned, Expiring, Event] by Administrator:
        "Check the permissions of `integrations.mail.folder` and the free space.";
}
