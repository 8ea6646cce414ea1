//! Reasons of machines, their public ports and their images.

use super::Row;
use crate::api::reason;

pub const ROWS: &[Row] = &[
    (&[reason::IMPORTING], "Its disk is being filled.", "Il disco viene riempito."),
    (&[reason::STARTING], "It is starting.", "Si sta avviando."),
    (
        &[reason::RUNNING],
        "It runs, and its system is still starting.",
        "È accesa e il suo sistema si sta ancora avviando.",
    ),
    (&[reason::STOPPING], "It is shutting down.", "Si sta spegnendo."),
    (&[reason::OFF], "It is off.", "È spenta."),
    (&[reason::FAILED], "A part of it has failed.", "Una sua parte è in errore."),
    (
        &[reason::POD_REFUSED, reason::ENVIRONMENT_ENFORCEMENT_FAILED, reason::ENFORCEMENT_FAILED],
        "A rule of the laboratory does not let it be made.",
        "Una regola del laboratorio non permette di crearla.",
    ),
    (
        &[reason::PROGRESS_DEADLINE_EXCEEDED],
        "Its program did not become ready in time.",
        "Il suo programma non è diventato pronto in tempo.",
    ),
    (
        &[reason::IMAGE_PULL_FAILED],
        "The image that it is made from cannot be fetched. Tell your teacher.",
        "L'immagine da cui è fatta non può essere scaricata. Dillo al docente.",
    ),
    (
        &[reason::CONTAINER_WAITS],
        "Its program waits to be started.",
        "Il suo programma attende di essere avviato.",
    ),
    (
        &[reason::SCHEDULING_GATED],
        "The laboratory holds it back for now.",
        "Per ora il laboratorio la trattiene.",
    ),
    (
        &[reason::POD_FAILED],
        "It has failed and is made again.",
        "Ha avuto un errore e viene creata di nuovo.",
    ),
    (
        &[reason::VOLUME_UNBOUND],
        "The laboratory has no disk for it yet.",
        "Il laboratorio non ha ancora un disco per lei.",
    ),
    (
        &[reason::MACHINE_PAUSED],
        "It is paused. An administrator can resume it.",
        "È in pausa. Un amministratore può riprenderla.",
    ),
    (
        &[reason::MACHINE_CRASHES],
        "It ends again and again. Tell your teacher.",
        "Continua a terminare. Dillo al docente.",
    ),
    (
        &[reason::MACHINE_ENDED],
        "It has ended, and has no disk to go on from: delete it and make it again.",
        "È terminata e non ha un disco da cui continuare: eliminala e creala di nuovo.",
    ),
    (
        &[reason::MACHINE_STATE, reason::UNKNOWN],
        "Its state is not known yet.",
        "Il suo stato non è ancora noto.",
    ),
    (
        &[reason::IMPORT_FAILED],
        "Its disk cannot be filled from its image. Tell your teacher.",
        "Il disco non può essere riempito dalla sua immagine. Dillo al docente.",
    ),
    (
        &[reason::IMPORT_RESTARTED],
        "Filling its disk has failed once and is tried again.",
        "Il riempimento del disco non è riuscito e viene ritentato.",
    ),
    (
        &[reason::CREATION_LOOP_BACKOFF],
        "A part of it cannot be made.",
        "Una sua parte non può essere creata.",
    ),
    (
        &[reason::QUOTA_EXCEEDED],
        "Other machines use all that you may use now: stop or delete one.",
        "Altre macchine usano tutto ciò che puoi usare: fermane o eliminane una.",
    ),
    (
        &[reason::NOT_PERSISTENT, reason::INVALID_IMAGE, reason::IMAGE_NOT_ALLOWED, reason::DISK_MISSING],
        "Its description has a mistake. Tell your teacher.",
        "La sua descrizione ha un errore. Dillo al docente.",
    ),
    (
        &[reason::KUBEVIRT_MISSING],
        "Virtual machines are not installed in this laboratory.",
        "In questo laboratorio le macchine virtuali non sono installate.",
    ),
    (
        &[reason::LOCAL_VM_DISABLED],
        "Machines of this kind are switched off here.",
        "Qui le macchine di questo tipo sono disattivate.",
    ),
    (
        &[reason::SHARED_VOLUME_NOT_FOUND],
        "A folder of the course that it needs does not exist. Tell your teacher.",
        "Una cartella del corso di cui ha bisogno non esiste. Dillo al docente.",
    ),
    (
        &[reason::SHARED_VOLUME_NOT_READY],
        "A folder of the course that it needs is being prepared.",
        "Una cartella del corso di cui ha bisogno è in preparazione.",
    ),
    (&[reason::MY_DRIVE_NOT_FOUND], "Your MyDrive is not there yet.", "Il tuo MyDrive non c'è ancora."),
    (
        &[reason::ENVIRONMENT_REMOVED],
        "A part of it is no longer in its description. Save what you need and make the machine again.",
        "Una sua parte non è più nella descrizione. Salva ciò che ti serve e crea di nuovo la macchina.",
    ),
    (&[reason::OAUTH2_PROXY_WAITS], "Its login is not ready yet.", "Il suo accesso non è ancora pronto."),
    (
        &[reason::NOT_ALLOWED],
        "This machine may not have public ports.",
        "Questa macchina non può avere porte pubbliche.",
    ),
    (
        &[reason::SEVERAL_ENVIRONMENTS],
        "A machine of several parts cannot have public ports.",
        "Una macchina di più parti non può avere porte pubbliche.",
    ),
    (
        &[reason::INVALID_REQUEST],
        "The public ports that were asked for are not possible.",
        "Le porte pubbliche richieste non sono possibili.",
    ),
    (
        &[reason::NO_ADDRESSES],
        "The laboratory has no public addresses.",
        "Il laboratorio non ha indirizzi pubblici.",
    ),
    (
        &[reason::NO_FREE_PORT],
        "The public port is taken: ask for 0, which means any that is free.",
        "La porta pubblica è occupata: chiedi 0, cioè una qualsiasi libera.",
    ),
    (
        &[reason::NETWORK_POLICY_FAILED, reason::SERVICE_FAILED],
        "The laboratory does not let the port be made public.",
        "Il laboratorio non permette di rendere pubblica la porta.",
    ),
    (
        &[reason::SERVICE_LEAVING, reason::WAITING_FOR_ADDRESS],
        "The public address is being assigned.",
        "L'indirizzo pubblico viene assegnato.",
    ),
    (
        &[reason::EXPOSURE_ASSIGNED],
        "The public ports can be reached.",
        "Le porte pubbliche sono raggiungibili.",
    ),
    (
        &[reason::OTHER_ADDRESS],
        "The laboratory has assigned another public address than it wanted.",
        "Il laboratorio ha assegnato un indirizzo pubblico diverso da quello voluto.",
    ),
    (
        &[reason::ANOTHER_SNAPSHOT],
        "Another image of this machine is being made first.",
        "Prima viene creata un'altra immagine di questa macchina.",
    ),
    (
        &[reason::PREDECESSOR_LEAVING],
        "An image of this name that was deleted is still being removed.",
        "Un'immagine con questo nome, già eliminata, viene ancora rimossa.",
    ),
    (
        &[reason::MACHINE_STOPPING],
        "The machine has not shut down yet.",
        "La macchina non si è ancora spenta.",
    ),
    (&[reason::DISK_NOT_READY], "The disk is still being filled.", "Il disco viene ancora riempito."),
    (&[reason::CREATING, reason::JOB_RUNNING], "The image is being made.", "L'immagine viene creata."),
    (
        &[reason::CONTAINER_FAILED],
        "Its program has failed and is started again.",
        "Il suo programma ha avuto un errore e viene riavviato.",
    ),
    (
        &[reason::CONTAINER_NOT_STARTED],
        "Its program cannot be started. Tell your teacher.",
        "Il suo programma non può essere avviato. Dillo al docente.",
    ),
    (
        &[reason::POD_UNSCHEDULABLE],
        "The laboratory is full: it starts as soon as there is room.",
        "Il laboratorio è pieno: parte appena c'è posto.",
    ),
    (
        &[reason::WAITING_FOR_POD, reason::POD_NOT_STARTED, reason::JOB_REFUSED, reason::SECRET_MISSING],
        "The laboratory cannot make the image yet.",
        "Il laboratorio non può ancora creare l'immagine.",
    ),
    (&[reason::COMPLETED], "The image is made.", "L'immagine è stata creata."),
    (
        &[reason::VALIDATION_ERROR],
        "No image can be made of this: the machine runs, or has no disk of its own.",
        "Non se ne può creare un'immagine: la macchina è accesa o non ha un disco proprio.",
    ),
    (
        &[reason::CREATION_FAILED],
        "The work on its disk has failed.",
        "Il lavoro sul suo disco non è riuscito.",
    ),
];
