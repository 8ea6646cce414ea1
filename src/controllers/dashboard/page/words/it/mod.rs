//! Italian.

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
    skip: "Vai al contenuto",
    pages: "Pagine",
    home: "Le mie macchine",
    courses: "Corsi",
    account: "Account",
    log_out: "Esci",
    help: "Aiuto",
    languages: "Lingua",
    reload: "Ricarica",
    not_live: "Non aggiornata: la connessione è interrotta e viene ristabilita.",
    no_scripts: "Senza JavaScript questa pagina non si aggiorna da sola.",
    live_absent: "Questa pagina non si aggiorna da sola: gli aggiornamenti automatici non fanno parte di questa installazione.",
    live_full: "Ora ci sono molte persone, perciò questa pagina non si aggiorna da sola.",
    old: "Il laboratorio non risponde. Finché non risponde non si può cambiare nulla. Questo è ciò che si sapeva",
    details: "Che cosa dice il laboratorio",
    done: |done| match done {
        Done::Created => "La macchina viene creata. Connetti appare qui appena è pronta.",
        Done::Started => "La macchina si sta avviando.",
        Done::Stopped => "La macchina si sta spegnendo.",
        Done::Kept => "La macchina ora vale come usata.",
        Done::Deleted => "La macchina viene eliminata.",
        Done::Renamed => "La macchina ha il suo nuovo nome.",
        Done::Exposed => "La porta viene resa pubblica.",
        Done::Unexposed => "La porta non è più pubblica.",
        Done::Saved => "L'immagine viene creata.",
        Done::Joined => "Sei nel corso. Le sue macchine appaiono tra un attimo.",
        Done::Asked => "Hai chiesto di iscriverti. Decide un responsabile del corso.",
        Done::Left => "Non sei più nel corso.",
        Done::KeyAdded => "La chiave è aggiunta. Le macchine che esistono già non la ricevono.",
        Done::KeyRemoved => "La chiave è rimossa.",
    },

    ago: |unit, count| match unit {
        Unit::Moments => "adesso".to_owned(),
        _ => format!("{} fa", span(unit, count)),
    },
    in_time: |unit, count| match unit {
        Unit::Moments => "tra meno di un minuto".to_owned(),
        _ => format!("tra {}", span(unit, count)),
    },
    weekdays: ["lunedì", "martedì", "mercoledì", "giovedì", "venerdì", "sabato", "domenica"],
    months: [
        "gennaio",
        "febbraio",
        "marzo",
        "aprile",
        "maggio",
        "giugno",
        "luglio",
        "agosto",
        "settembre",
        "ottobre",
        "novembre",
        "dicembre",
    ],
    duration: |unit, count| match unit {
        's' => plural(count, "secondo", "secondi"),
        'm' => plural(count, "minuto", "minuti"),
        'h' => plural(count, "ora", "ore"),
        _ => plural(count, "giorno", "giorni"),
    },
    measure: |measure| match measure {
        Measure::Instances => "Macchine".to_owned(),
        Measure::Cpu => "Core del processore".to_owned(),
        Measure::Memory => "Memoria".to_owned(),
        Measure::Disk => "Disco".to_owned(),
        Measure::Other(name) => name.clone(),
    },
    amount: |measure, amount| match measure {
        Measure::Instances => format!("{amount} {}", if amount == "1" { "macchina" } else { "macchine" }),
        Measure::Cpu => format!("{amount} core"),
        Measure::Memory => format!("{amount} di memoria"),
        Measure::Disk => format!("{amount} di disco"),
        Measure::Other(name) => format!("{amount} {name}"),
    },
    decimal: ',',
    share: |part, whole| format!("{part} su {whole}"),
    unlimited: "nessun limite",

    standing: |standing| match standing {
        Standing::New => "Nuova",
        Standing::Importing => "In preparazione",
        Standing::Starting => "In avvio",
        Standing::Running => "Quasi pronta",
        Standing::Ready => "Pronta",
        Standing::Stopping => "In arresto",
        Standing::Off => "Spenta",
        Standing::Quota => "In attesa di quota",
        Standing::Failed => "In errore",
        Standing::Blocked => "Non realizzabile",
        Standing::Deleting => "In eliminazione",
        Standing::Unknown => "Sconosciuta",
    },
    because: |standing| match standing {
        Standing::New => "Il laboratorio non se ne è ancora occupato.",
        Standing::Importing => "Il disco viene riempito. Ci vogliono alcuni minuti, una volta sola.",
        Standing::Starting => "Si sta avviando.",
        Standing::Running => "È accesa e il suo sistema si sta ancora avviando.",
        Standing::Ready => "Si può usare.",
        Standing::Stopping => "Si sta spegnendo.",
        Standing::Off => "È spenta. Il disco è conservato.",
        Standing::Quota => {
            "Altre macchine usano tutto ciò che puoi usare ora. Parte appena una di loro viene fermata."
        }
        Standing::Failed => "Qualcosa è andato storto.",
        Standing::Blocked => "Una sua parte non può essere creata.",
        Standing::Deleting => "Viene eliminata.",
        Standing::Unknown => "Questa pagina non conosce il suo stato.",
    },
    of_course: "in",
    connect: "Connetti",
    start: "Avvia",
    stop: "Ferma",
    keep: "Mantieni",
    delete: "Elimina",
    delete_question: |name| format!("Eliminare {name}?"),
    delete_data: "Tutti i dati sul suo disco vanno persi. MyDrive resta.",
    delete_yes: "Elimina con tutti i dati",
    until: |until, because| match (until, because) {
        (Some(End::Stopped), Because::Unused) => "Nessuno la usa: viene fermata",
        (Some(End::Deleted), Because::Unused) => "Nessuno la usa: viene eliminata con tutti i dati",
        (None, Because::Unused) => "Nessuno la usa: viene fermata o eliminata",
        (_, Because::Off) => "Resta spenta: viene eliminata con tutti i dati",
        (_, Because::Age) => "Ha raggiunto la sua età: viene eliminata con tutti i dati",
    },
    warning_due: |until, because| match (until, because) {
        (Some(End::Stopped), Because::Unused) => {
            "Prima che venga fermata perché nessuno la usa, arriva un avviso"
        }
        (None, Because::Unused) => {
            "Prima che venga fermata o eliminata perché nessuno la usa, arriva un avviso"
        }
        (_, Because::Unused) => "Prima che venga eliminata perché nessuno la usa, arriva un avviso",
        (_, Because::Off) => "Prima che venga eliminata perché resta spenta, arriva un avviso",
        (_, Because::Age) => "Prima che venga eliminata per la sua età, arriva un avviso",
    },
    keep_hint: "Vale come un uso adesso: il tempo ricomincia.",
    no_machine: "Non hai ancora macchine.",
    personal: "Spazio personale",
    no_course_name: "Altre macchine",

    new_machine: "Avvia una nuova macchina",
    no_templates_here: "Questo corso non ha ancora macchine.",
    left: "Puoi usare ancora",
    keeps_disk: "Si può fermare e riavviare; il disco è conservato",
    loses_disk: "Alla fine i dati vanno persi; tieni il tuo lavoro in MyDrive",
    refusal,
    too_many_machines: |most| {
        format!("Hai già tutte le macchine che puoi avere, {most}: eliminane una prima di avviarne un'altra.")
    },
    used_by: "Usati da",
    no_right: "Qui non puoi farlo.",
    no_namespace: "Il tuo spazio nel laboratorio non c'è ancora.",
    away: "Ora il laboratorio non risponde.",

    why: "Perché non è pronta",
    warnings: "Avvisi",
    next: "Che cosa succede dopo",
    next_nothing: "Nulla: questa macchina non viene né fermata né eliminata da sola.",
    template_says: |until, because, time| match (until, because) {
        (End::Stopped, Because::Unused) => format!("Viene fermata dopo {time} senza uso."),
        (_, Because::Unused) => format!("Viene eliminata dopo {time} senza uso."),
        (_, Because::Off) => format!("Viene eliminata dopo {time} da spenta."),
        (_, Because::Age) => format!("Viene eliminata all'età di {time}."),
    },
    warned: |count| format!("Hai ricevuto {}, l'ultimo", plural(count.unsigned_abs(), "avviso", "avvisi")),
    pending_change: "Il laboratorio non ha ancora eseguito l'ultima modifica.",
    environments: "Parti di questa macchina",
    open: "Apri",
    ssh: "Con SSH",
    ssh_hint: "Serve una chiave nel tuo account.",
    web_ssh: "Apri un terminale qui",
    no_ssh_yet: "L'indirizzo si conosce quando è accesa.",
    ports: "Porte pubbliche",
    ports_hint: "Chiunque su Internet può raggiungere una porta pubblica.",
    no_ports: "Nessuna porta è pubblica.",
    port_line: |inside| format!("porta alla porta {inside} della macchina"),
    port_soon: "Una porta pubblica viene assegnata.",
    remove: "Rimuovi",
    add: "Aggiungi",
    add_port: "Rendi pubblica una porta",
    port_name: "Nome",
    port_name_hint: "Fino a 15 lettere minuscole, cifre e trattini, per esempio web",
    port_inside: "Porta della macchina",
    port_outside: "Porta pubblica",
    port_outside_hint: "0 significa una qualsiasi libera",
    protocol: "Protocollo",
    name: "Nome",
    rename: "Rinomina",
    rename_hint: "Al massimo 200 caratteri",
    save: "Salva come immagine",
    save_hint: "Crea un'immagine del disco, da cui il tuo corso può creare nuove macchine.",
    save_running: "Prima ferma la macchina.",
    image_name: "Nome dell'immagine",
    image_name_hint: "Lettere minuscole e cifre, separate da singoli punti, trattini o trattini bassi",
    save_button: "Salva come immagine",
    snapshots: "Immagini di questa macchina",
    snapshot: |phase| match phase {
        SnapshotPhase::Pending | SnapshotPhase::Unset => "In attesa",
        SnapshotPhase::Processing => "In creazione",
        SnapshotPhase::Completed => "Fatta",
        SnapshotPhase::Failed => "Non riuscita",
        SnapshotPhase::Other(_) => "Sconosciuta",
    },
    facts: "Informazioni su questa macchina",
    template: "Creata da",
    course: "Corso",
    created: "Creata",
    identity: "Identità",
    ready_in: "Pronta la prima volta dopo",
    last_use: "Ultimo uso noto",
    enders: "Chi può fermarla o eliminarla",
    you: "tu",
    managers: "i responsabili del corso",
    administrators: "gli amministratori",
    of_tenant: "È di",
    state_since: "In questo stato da",

    my_courses: "I miei corsi",
    other_courses: "Corsi a cui puoi iscriverti",
    no_courses: "Non sei ancora in nessun corso.",
    no_other_courses: "Non ci sono altri corsi a cui puoi iscriverti per conto tuo.",
    role_user: "Segui questo corso.",
    role_manager: "Gestisci questo corso.",
    role_candidate: "Hai chiesto di iscriverti. Decide un responsabile del corso.",
    failing: "Il laboratorio non può iscriverti: il corso non esiste o non lo accetta.",
    join: "Iscriviti",
    join_hint: "Sei subito dentro.",
    ask: "Chiedi di iscriverti",
    ask_hint: "Decide un responsabile del corso.",
    leave: "Lascia",
    withdraw: "Ritira",
    leave_question: "Le tue macchine di questo corso restano, ma non puoi avviarne di nuove.",
    gives: "Ti dà",

    person: "Tu",
    email: "E-mail",
    user_name: "Nome utente",
    keys: "Chiavi SSH",
    keys_hint: "Con queste accedi alle tue macchine. Una macchina riceve le chiavi quando viene creata.",
    no_keys: "Non hai ancora chiavi.",
    key_error: |error| match error {
        PublicKeyError::LineBreak => "Una chiave è una riga: aggiungi ogni chiave da sola.",
        PublicKeyError::TooLong => "È più lunga di qualsiasi chiave.",
        PublicKeyError::Unreadable => {
            "Non è una chiave pubblica: comincia con una parola come ssh-ed25519 e si trova in un file che finisce con .pub."
        }
        PublicKeyError::Unsupported => "Chiavi di questo tipo non sono accettate: usa Ed25519, ECDSA o RSA.",
    },
    key_unused: "Non usata: ci sono troppe chiavi prima di questa.",
    key_without_name: "Chiave senza commento",
    fingerprint: "Impronta",
    add_key: "Aggiungi una chiave",
    key_label: "Chiave pubblica",
    key_hint: "Il contenuto di un file come ~/.ssh/id_ed25519.pub. Mai una chiave privata.",
    quota: "Che cosa usi",
    quota_all: "Tutti i corsi insieme",
    quota_of: |course| format!("Che cosa usi di {course}"),
    used: "Usato",
    granted: "Concesso",
    what: "Che cosa",
    drive: "MyDrive",
    drive_hint: "La tua cartella personale: nelle tue macchine è in /media/mydrive e sopravvive a tutte.",
    drive_size: |size| format!("Contiene fino a {size}."),
    drive_open: "Avvia una macchina per vederla",
    drive_is_open: "La sua macchina c'è già",

    states: states::STATES,
};

fn plural(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

fn span(unit: Unit, count: i64) -> String {
    let count = count.unsigned_abs();
    match unit {
        Unit::Days => plural(count, "giorno", "giorni"),
        Unit::Hours => plural(count, "ora", "ore"),
        Unit::Minutes => plural(count, "minuto", "minuti"),
        Unit::Moments => "un attimo".to_owned(),
    }
}

fn refusal(refusal: &Refusal) -> String {
    match refusal {
        Refusal::NoTemplate(_) => "Ciò da cui è fatta non c'è più: non può essere avviata.".to_owned(),
        Refusal::WritesForeignVolume { volume, .. } => {
            format!("Scriverebbe nel volume {volume} di qualcun altro: imposta readOnly.")
        }
        Refusal::OfAnotherTenant { .. } => "Appartiene a qualcun altro.".to_owned(),
        Refusal::NoTenant(_) => "Il laboratorio non ti conosce.".to_owned(),
        Refusal::NotEnrolled { workspace, .. } => format!("Non sei nel corso {workspace}."),
        Refusal::NoWorkspace(workspace) => format!("Il corso {workspace} non esiste."),
        Refusal::NoPersonalWorkspace(_) => "Non hai uno spazio personale.".to_owned(),
        Refusal::Elsewhere { namespace, .. } => format!("Dovrebbe essere in {namespace}."),
        Refusal::Exceeded(shares) => {
            let over = super::list(&WORDS, shares, |used, limit| format!("{used} invece di {limit}"));
            format!("Con questa useresti più di quanto puoi: {over}.")
        }
    }
}
