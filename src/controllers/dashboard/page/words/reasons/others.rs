//! Reasons of courses and Tenants, of the automation, and of servers outside of the cluster.

use super::Row;
use crate::api::reason;

pub const ROWS: &[Row] = &[
    (&[reason::READY, reason::RECONCILED, reason::VALID, reason::ENROLLED], "All is well.", "Va tutto bene."),
    (&[reason::PENDING, reason::KEYCLOAK_PENDING], "It is being set up.", "È in preparazione."),
    (
        &[reason::NAME_CONFLICT],
        "Something else in the laboratory has a name that it needs.",
        "Qualcos'altro nel laboratorio ha un nome di cui ha bisogno.",
    ),
    (
        &[reason::TENANT_MISMATCH],
        "It names somebody else than whose space it is in.",
        "Indica una persona diversa da quella del suo spazio.",
    ),
    (
        &[reason::INVALID_SPEC, reason::INVALID_QUANTITY, reason::INVALID_TEMPLATE],
        "Its description has a mistake. Tell your teacher.",
        "La sua descrizione ha un errore. Dillo al docente.",
    ),
    (
        &[reason::INVALID_NAME],
        "Its name is not possible: make it again under another one.",
        "Il suo nome non è possibile: creala di nuovo con un altro nome.",
    ),
    (
        &[reason::INVALID_DURATION],
        "A time in its description has a mistake, so it is neither stopped nor deleted by itself.",
        "Un tempo nella sua descrizione ha un errore, perciò non viene né fermata né eliminata da sola.",
    ),
    (
        &[reason::INVALID_PUBLIC_KEY],
        "Some of your SSH keys cannot be used.",
        "Alcune delle tue chiavi SSH non possono essere usate.",
    ),
    (
        &[reason::TEMPLATE_NOT_FOUND],
        "What it is made from is gone. Ask your teacher, or delete it.",
        "Ciò da cui è fatta non c'è più. Chiedi al docente, oppure eliminala.",
    ),
    (
        &[reason::TENANT_NOT_FOUND],
        "The laboratory does not know whose it is.",
        "Il laboratorio non sa di chi sia.",
    ),
    (
        &[reason::EXCEEDS_QUOTA],
        "It needs more than the course gives to anybody. Tell your teacher.",
        "Richiede più di quanto il corso dia a chiunque. Dillo al docente.",
    ),
    (
        &[reason::STORAGE_CLASS_NOT_FOUND],
        "The laboratory has no disks of the kind that it needs. Tell your teacher.",
        "Il laboratorio non ha dischi del tipo richiesto. Dillo al docente.",
    ),
    (
        &[reason::NO_NODE],
        "No computer of the laboratory can run it. Tell your teacher.",
        "Nessun computer del laboratorio può eseguirla. Dillo al docente.",
    ),
    (
        &[reason::INVALID_WORKSPACE, reason::INVALID_QUOTA],
        "The quota of a course has a mistake. Tell your teacher.",
        "La quota di un corso ha un errore. Dillo al docente.",
    ),
    (
        &[reason::INVALID_TENANT],
        "Your account in the laboratory has a mistake. Tell those who run it.",
        "Il tuo account nel laboratorio ha un errore. Dillo a chi lo gestisce.",
    ),
    (
        &[reason::NAMESPACE_TERMINATING],
        "Your space is being removed, and is made again after that.",
        "Il tuo spazio viene rimosso, poi viene creato di nuovo.",
    ),
    (
        &[reason::WORKSPACE_NOT_FOUND],
        "One of your courses does not exist, or does not accept you.",
        "Uno dei tuoi corsi non esiste o non ti accetta.",
    ),
    (
        &[reason::AWAITING_VERIFICATION],
        "Your e-mail address is not confirmed.",
        "Il tuo indirizzo e-mail non è confermato.",
    ),
    (
        &[reason::INACTIVE],
        "You were away for long: your space is made again now.",
        "Dopo una lunga pausa il tuo spazio viene creato di nuovo.",
    ),
    (&[reason::VOLUME_MISSING], "A disk that it needs is gone.", "Un disco di cui ha bisogno non c'è più."),
    (
        &[reason::NAMESPACE_MISSING, reason::VOLUME_NOT_NFS, reason::PROVISIONING_FAILED],
        "Your MyDrive cannot be prepared. Tell those who run the laboratory.",
        "Il tuo MyDrive non può essere preparato. Dillo a chi gestisce il laboratorio.",
    ),
    (&[reason::WARNED], "You were warned by e-mail.", "Hai ricevuto un avviso per e-mail."),
    (
        &[reason::OVERDUE],
        "Its end is due: use it, or save its data.",
        "La sua fine è vicina: usala, o salva i suoi dati.",
    ),
    (&[reason::NOT_OVERDUE], "Its end is not due yet.", "La sua fine non è ancora vicina."),
    (
        &[reason::STOPPED],
        "It was stopped because nobody used it. Start it to go on.",
        "È stata fermata perché nessuno la usava. Avviala per continuare.",
    ),
    (
        &[reason::METRICS_UNAVAILABLE],
        "It is not known whether it is used, so it is left as it is.",
        "Non si sa se venga usata, perciò viene lasciata com'è.",
    ),
    (&[reason::KEPT], "The exam goes on.", "L'esame continua."),
    (
        &[reason::UNCONFIRMED],
        "The exam server says that it is over; it is asked once more.",
        "Il server dell'esame dice che è finito; viene interrogato ancora.",
    ),
    (
        &[reason::TERMINATING],
        "The exam is over, and the machine is about to be stopped.",
        "L'esame è finito e la macchina sta per essere fermata.",
    ),
    (
        &[reason::TERMINATED],
        "The exam is over, and the machine was stopped.",
        "L'esame è finito e la macchina è stata fermata.",
    ),
    (
        &[reason::STATUS_CHECK_FAILED],
        "The exam server does not answer as it should; the machine is kept.",
        "Il server dell'esame non risponde come dovrebbe; la macchina viene mantenuta.",
    ),
    (
        &[reason::WAITING_FOR_OFF],
        "Your work is handed in as soon as the machine is off.",
        "Il tuo lavoro viene consegnato appena la macchina è spenta.",
    ),
    (&[reason::UPLOADING], "Your work is being handed in.", "Il tuo lavoro viene consegnato."),
    (
        &[reason::RETRYING],
        "Handing in your work has failed and is tried again.",
        "La consegna del tuo lavoro non è riuscita e viene ritentata.",
    ),
    (
        &[reason::UPLOADED, reason::SUBMISSION_COMPLETED],
        "Your work was handed in.",
        "Il tuo lavoro è stato consegnato.",
    ),
    (
        &[reason::GIVING_UP, reason::SUBMISSION_FAILED],
        "Your work could not be handed in. It is kept on the disk; tell your teacher.",
        "Il tuo lavoro non è stato consegnato. È conservato sul disco; dillo al docente.",
    ),
    (&[reason::NOT_ELIGIBLE], "There is nothing to hand in.", "Non c'è nulla da consegnare."),
    (
        &[reason::WITHDRAWN],
        "The request to hand in your work was withdrawn.",
        "La richiesta di consegna è stata ritirata.",
    ),
    (
        &[reason::ACCOUNT_EXISTS],
        "Another account has your user name. Tell those who run the laboratory.",
        "Un altro account ha il tuo nome utente. Dillo a chi gestisce il laboratorio.",
    ),
    (
        &[
            reason::KEYCLOAK_UNREACHABLE,
            reason::KEYCLOAK_UNAVAILABLE,
            reason::KEYCLOAK_UNAUTHORIZED,
            reason::KEYCLOAK_FORBIDDEN,
            reason::KEYCLOAK_NOT_FOUND,
            reason::KEYCLOAK_BAD_ANSWER,
            reason::KEYCLOAK_SECRET_UNREADABLE,
            reason::KEYCLOAK_PANICKED,
        ],
        "The server of the accounts cannot be used now, so changes of your account wait.",
        "Ora il server degli account non è utilizzabile, perciò le modifiche del tuo account attendono.",
    ),
    (
        &[reason::KEYCLOAK_CONFLICT, reason::KEYCLOAK_REJECTED],
        "The server of the accounts refuses your name or e-mail address. Tell those who run the laboratory.",
        "Il server degli account rifiuta il tuo nome o indirizzo e-mail. Dillo a chi gestisce il laboratorio.",
    ),
    (
        &[reason::KEYCLOAK_MAIL_NOT_SENT],
        "The e-mail with the link to confirm your address could not be sent yet.",
        "L'e-mail con il collegamento per confermare l'indirizzo non è ancora stata inviata.",
    ),
    (
        &[reason::MAIL_RECIPIENT_INVALID, reason::MAIL_RECIPIENT_REFUSED, reason::MAIL_UNDELIVERABLE],
        "E-mails do not reach you, so you cannot be warned. Have your address corrected.",
        "Le e-mail non ti raggiungono, perciò gli avvisi non arrivano. Fai correggere il tuo indirizzo.",
    ),
    (
        &[
            reason::MAIL_TEMPLATE_INVALID,
            reason::MAIL_SETTINGS_INVALID,
            reason::MAIL_SERVER_UNREACHABLE,
            reason::MAIL_TIMEOUT,
            reason::MAIL_CERTIFICATE_REFUSED,
            reason::MAIL_LOGIN_REFUSED,
            reason::MAIL_SERVER_UNAVAILABLE,
            reason::MAIL_CONNECTION_REFUSED,
            reason::MAIL_SENDER_REFUSED,
            reason::MAIL_REFUSED,
            reason::MAIL_FOLDER_UNUSABLE,
        ],
        "The e-mail that warns you could not be sent yet; it is tried again.",
        "L'e-mail che ti avvisa non è ancora stata inviata; viene ritentata.",
    ),
];
