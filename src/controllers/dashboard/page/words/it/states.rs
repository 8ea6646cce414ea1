//! The states and errors.

use crate::controllers::dashboard::page::words::{Said, States};

const AGAIN: &str = "Riprova";
const BACK: &str = "Alle mie macchine";

pub const STATES: States = States {
    no_tenant: Said {
        heading: "Non hai un account nel laboratorio",
        happened: "Hai effettuato l'accesso, ma il laboratorio non ti conosce.",
        next: "Chiedi a chi lo gestisce, o al docente del tuo corso, di aggiungerti.",
        action: AGAIN,
    },
    unconfirmed: Said {
        heading: "Conferma il tuo indirizzo e-mail",
        happened: "Il tuo account c'è, ma l'indirizzo {} non è confermato.",
        next: "Apri il collegamento nell'e-mail che ti è stata inviata. Guarda anche nella posta indesiderata.",
        action: "L'ho confermato",
    },
    no_namespace: Said {
        heading: "Il tuo spazio è in preparazione",
        happened: "Il posto per le tue macchine non c'è ancora. Viene creato al primo accesso, e di nuovo dopo una lunga pausa.",
        next: "Ci vogliono pochi secondi. Questa pagina prosegue da sola quando è pronto.",
        action: "Guarda di nuovo",
    },
    no_course: Said {
        heading: "Non sei in nessun corso",
        happened: "Le macchine appartengono ai corsi, e tu non sei in nessuno.",
        next: "Iscriviti a uno, o chiedi di farlo.",
        action: "Ai corsi",
    },
    not_found: Said {
        heading: "Non trovata",
        happened: "Questa pagina non esiste, o la macchina non c'è più.",
        next: "Forse è stata eliminata.",
        action: BACK,
    },
    refused: Said {
        heading: "Non permesso",
        happened: "Il laboratorio lo ha rifiutato.",
        next: "Che cosa dice è qui sotto. Se dovrebbe essere permesso, chiedi al docente.",
        action: BACK,
    },
    changed: Said {
        heading: "Nel frattempo è cambiata",
        happened: "Qualcun altro l'ha cambiata da quando questa pagina è stata caricata, perciò non è stato fatto nulla.",
        next: "Ciò che hai scritto è conservato. Guarda com'è ora e rifallo, se va ancora bene.",
        action: "Mostra com'è ora",
    },
    away: Said {
        heading: "Il laboratorio non risponde",
        happened: "Il server che conosce le tue macchine non risponde. L'ultima risposta: {}.",
        next: "Le macchine accese continuano e le loro pagine possono restare aperte. Nulla va perso.",
        action: AGAIN,
    },
    issuer_refused: Said {
        heading: "Il laboratorio non accetta l'accesso",
        happened: "Hai effettuato l'accesso con {}, ma il server che conosce le tue macchine non accetta i suoi token.",
        next: "Non è colpa tua. Dillo a chi gestisce il laboratorio.",
        action: AGAIN,
    },
    login_away: Said {
        heading: "L'accesso non risponde",
        happened: "Il server che verifica chi sei non risponde.",
        next: "Aspetta un minuto. Le macchine aperte continuano.",
        action: AGAIN,
    },
    login_failed: Said {
        heading: "L'accesso non è riuscito",
        happened: "Il server che verifica chi sei ti ha rimandato qui senza accesso.",
        next: "Che cosa dice è qui sotto. Accedi ancora una volta.",
        action: "Accedi",
    },
    session_over: Said {
        heading: "La sessione è terminata",
        happened: "L'accesso è terminato.",
        next: "Accedi, e torni dove eri.",
        action: "Accedi",
    },
    logged_out: Said {
        heading: "Accesso terminato",
        happened: "L'accesso è terminato qui e nelle altre pagine del laboratorio.",
        next: "Le macchine accese continuano.",
        action: "Accedi",
    },
    too_many: Said {
        heading: "Troppe richieste",
        happened: "Ora il laboratorio ha più lavoro di quanto ne possa fare.",
        next: "Aspetta {} e riprova.",
        action: AGAIN,
    },
    not_here: Said {
        heading: "Inviata da altrove",
        happened: "Questa richiesta non viene da queste pagine, perciò non è stato fatto nulla.",
        next: "Se eri tu, fallo qui.",
        action: BACK,
    },
    broken: Said {
        heading: "Qui qualcosa è andato storto",
        happened: "Questa pagina non è stata creata.",
        next: "Di' a chi gestisce il laboratorio che cosa c'è qui sotto e quando è successo.",
        action: AGAIN,
    },
};
