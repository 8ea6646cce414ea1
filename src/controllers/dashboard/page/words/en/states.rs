//! The states and errors.

use crate::controllers::dashboard::page::words::{Said, States};

const AGAIN: &str = "Try again";
const BACK: &str = "To my machines";

pub const STATES: States = States {
    no_tenant: Said {
        heading: "You have no account in the laboratory",
        happened: "You are logged in, but the laboratory does not know you.",
        next: "Ask those who run it, or the teacher of your course, to add you.",
        action: AGAIN,
    },
    unconfirmed: Said {
        heading: "Confirm your e-mail address",
        happened: "Your account is there, but the address {} is not confirmed.",
        next: "Follow the link in the e-mail that was sent to it. Look into the folder for unwanted mail, too.",
        action: "I have confirmed it",
    },
    no_namespace: Said {
        heading: "Your space is being prepared",
        happened: "The place for your machines is not there yet. It is made at your first login, and again after a long pause.",
        next: "It takes a few seconds. This page goes on by itself when it is there.",
        action: "Look again",
    },
    no_course: Said {
        heading: "You are in no course",
        happened: "Machines belong to courses, and you are in none.",
        next: "Join one, or ask to.",
        action: "To the courses",
    },
    not_found: Said {
        heading: "Not found",
        happened: "There is no such page, or no such machine any more.",
        next: "It may have been deleted.",
        action: BACK,
    },
    refused: Said {
        heading: "Not allowed",
        happened: "The laboratory has refused this.",
        next: "What it says is below. If it should be allowed, ask your teacher.",
        action: BACK,
    },
    changed: Said {
        heading: "It has changed meanwhile",
        happened: "Somebody or something else has changed it since this page was loaded, so nothing was done.",
        next: "What you wrote is kept. Look at it as it is now, and do it again if it still fits.",
        action: "Show it as it is now",
    },
    away: Said {
        heading: "The laboratory does not answer",
        happened: "The server that knows your machines does not answer. Its last answer: {}.",
        next: "Machines that run go on, and their pages can be open. Nothing is lost.",
        action: AGAIN,
    },
    issuer_refused: Said {
        heading: "The laboratory does not accept the login",
        happened: "You are logged in by {}, but the server that knows your machines does not accept its tokens.",
        next: "This is not your fault. Tell those who run the laboratory.",
        action: AGAIN,
    },
    login_away: Said {
        heading: "The login does not answer",
        happened: "The server that checks who you are does not answer.",
        next: "Wait a minute. Machines that are open go on.",
        action: AGAIN,
    },
    login_failed: Said {
        heading: "The login has failed",
        happened: "The server that checks who you are has sent you back without a login.",
        next: "What it says is below. Log in once more.",
        action: "Log in",
    },
    session_over: Said {
        heading: "You were logged out",
        happened: "The login has ended.",
        next: "Log in, and you are back where you were.",
        action: "Log in",
    },
    logged_out: Said {
        heading: "You are logged out",
        happened: "The login has ended here and in the other pages of the laboratory.",
        next: "Machines that run go on.",
        action: "Log in",
    },
    too_many: Said {
        heading: "Too many requests",
        happened: "The laboratory has more to do than it can now.",
        next: "Wait {} and try again.",
        action: AGAIN,
    },
    not_here: Said {
        heading: "Sent from elsewhere",
        happened: "This request does not come from these pages, so nothing was done.",
        next: "If it was you, do it here.",
        action: BACK,
    },
    broken: Said {
        heading: "Something went wrong here",
        happened: "This page could not be made.",
        next: "Tell those who run the laboratory what is below, and when it was.",
        action: AGAIN,
    },
};
