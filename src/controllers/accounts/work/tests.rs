use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::json;
use tokio::time::{Instant, sleep};

use super::*;
use crate::api::tenant::Tenant;
use crate::clients::http::HttpError;
use crate::runtime::outages::Outages;

/// An effect whose result is a number.
#[derive(Debug, Clone, PartialEq)]
struct Count(u32);

impl Effect for Count {
    type Result = u32;
}

struct Bed {
    outage: Outage,
    queue: Arc<Queue>,
    work: AccountWork<Count>,
    /// How often work was started.
    begun: Arc<AtomicU32>,
}

impl Bed {
    fn new() -> Self {
        let (outage, queue) = (Outage::default(), Arc::new(Queue::new("test")));
        let work = AccountWork::new(&outage, &queue);
        Self { outage, queue, work, begun: Arc::default() }
    }

    /// Carries out an effect that takes some time and ends with this result.
    async fn perform(
        &self,
        name: &str,
        effect: u32,
        takes: Duration,
        end: Worked<u32>,
        is_settled: bool,
    ) -> EffectOutcome<u32> {
        let begun = Arc::clone(&self.begun);
        let work = async move {
            begun.fetch_add(1, Ordering::SeqCst);
            sleep(takes).await;
            end
        };
        self.work.perform(&tenant(name), &Count(effect), is_settled, work).await
    }

    fn begun(&self) -> u32 {
        self.begun.load(Ordering::SeqCst)
    }
}

fn tenant(name: &str) -> Tenant {
    serde_json::from_value(json!({"metadata": {"name": name, "uid": name, "generation": 1}})).unwrap()
}

fn silence() -> KeycloakError {
    KeycloakError::Unreachable {
        url: "http://kc".to_owned(),
        problem: HttpError::Timeout(Duration::from_secs(10)),
    }
}

/// The reason of a postponed effect.
fn reason(outcome: &EffectOutcome<u32>) -> &'static str {
    match &outcome.error {
        Some(EffectError::Postponed(problem)) => problem.reason.as_str(),
        other => panic!("{other:?} is not postponed"),
    }
}

const SHORT: Duration = Duration::from_millis(50);
const LONG: Duration = Duration::from_secs(3);

#[tokio::test(start_paused = true)]
async fn a_result_in_time_is_the_outcome() {
    let bed = Bed::new();
    assert_eq!(bed.perform("a", 1, SHORT, (Some(7), None), false).await, EffectOutcome::done(7));
    let failed = bed.perform("a", 1, SHORT, (None, Some(KeycloakError::MailNotSent)), true).await;
    assert!(matches!(failed.error, Some(EffectError::Failed(_))), "a failure is reported, settled or not");
    assert_eq!((bed.begun(), bed.queue.waiting()), (2, 0));
}

#[tokio::test(start_paused = true)]
async fn a_late_result_adds_the_object_and_is_taken_once() {
    let bed = Bed::new();
    let begin = Instant::now();
    let outcome = bed.perform("a", 1, LONG, (Some(7), None), false).await;
    assert_eq!((begin.elapsed(), reason(&outcome)), (PATIENCE, "KeycloakPending"));
    // The task is running: no new one starts, and the reconcile does not wait.
    let again = bed.perform("a", 1, LONG, (Some(8), None), false).await;
    assert_eq!((begin.elapsed(), reason(&again), bed.begun()), (PATIENCE, "KeycloakPending", 1));
    let job = bed.queue.next().await.unwrap();
    assert_eq!((&*job.key.name, begin.elapsed()), ("a", LONG));
    assert_eq!(bed.perform("a", 1, LONG, (Some(8), None), false).await, EffectOutcome::done(7));
    assert_eq!(bed.begun(), 1);
    // After an answer, a reconcile waits again.
    assert_eq!(bed.perform("a", 1, SHORT, (Some(9), None), false).await, EffectOutcome::done(9));
}

#[tokio::test(start_paused = true)]
async fn a_late_result_of_another_effect_is_not_taken() {
    let bed = Bed::new();
    reason(&bed.perform("a", 1, LONG, (Some(7), None), false).await);
    reason(&bed.perform("a", 2, SHORT, (Some(8), None), false).await);
    let _job = bed.queue.next().await.unwrap();
    assert_eq!(bed.perform("a", 2, SHORT, (Some(8), None), false).await, EffectOutcome::done(8));
    // The result for a forgotten object is not taken, either.
    reason(&bed.perform("b", 1, LONG, (Some(7), None), false).await);
    bed.work.forget(&ObjectKey::of(&tenant("b")));
    sleep(LONG).await;
    assert_eq!(bed.perform("b", 1, SHORT, (Some(9), None), false).await, EffectOutcome::done(9));
}

#[tokio::test(start_paused = true)]
async fn a_keycloak_that_never_answers_delays_2000_objects_by_less_than_a_second() {
    let bed = Bed::new();
    let never = Duration::from_secs(10);
    let begin = Instant::now();
    for n in 0..2_000 {
        let is_settled = n % 2 == 0;
        let outcome = bed.perform(&format!("{n}"), 1, never, (None, Some(silence())), is_settled).await;
        assert_eq!(outcome.error.is_none(), is_settled, "nothing is reported about a settled object");
    }
    assert!(begin.elapsed() < Duration::from_secs(1), "{:?}", begin.elapsed());
    // Only a limited number of requests run at the same time. When they fail, the others are not started.
    sleep(2 * never).await;
    assert_eq!(bed.begun(), u32::try_from(MOST_AT_ONCE).unwrap());
    assert_eq!(bed.queue.waiting(), 2_000, "each gets its reason once");
    let outcome = bed.perform("1", 1, never, (Some(7), None), false).await;
    assert_eq!((reason(&outcome), bed.begun()), ("KeycloakUnreachable", 8));
}

#[tokio::test(start_paused = true)]
async fn waiting_work_continues_when_keycloak_answers_again() {
    let bed = Bed::new();
    let outcome = bed.perform("a", 1, SHORT, (None, Some(silence())), false).await;
    assert_eq!(reason(&outcome), "KeycloakUnreachable");
    reason(&bed.perform("b", 1, SHORT, (Some(7), None), false).await);
    assert_eq!((bed.begun(), bed.queue.waiting()), (1, 0), "neither is tried again during the outage");
    let outages = Outages::default();
    let back = Instant::now() + Duration::from_mins(10);
    let ask = || async { if Instant::now() < back { Err(silence()) } else { Ok(Ok(())) } };
    let woken = async {
        let mut names = Vec::new();
        for _ in 0..2 {
            names.push(bed.queue.next().await.unwrap().key.name.to_string());
        }
        names.sort();
        names
    };
    tokio::select! {
        () = bed.outage.watch(ask, (&outages, "https://auth.example.com")) => {}
        names = woken => assert_eq!(names, ["a", "b"]),
    }
    let took = Instant::now() - back;
    assert!(took <= Duration::from_secs(5), "{took:?}");
    assert_eq!(bed.perform("b", 1, SHORT, (Some(7), None), false).await, EffectOutcome::done(7));
}

#[tokio::test(start_paused = true)]
async fn a_failed_request_is_reported_whatever_the_status_says() {
    let bed = Bed::new();
    assert_eq!(bed.perform("a", 1, SHORT, (Some(7), None), true).await, EffectOutcome::done(7));
    bed.outage.begin(&silence());
    let told = async |effect| bed.perform("a", effect, SHORT, (Some(7), None), true).await.error.is_some();
    assert!(!told(1).await, "it is up to date");
    assert!(told(2).await, "another effect is requested");
    // The status may be outdated.
    assert!(told(2).await);
}

#[tokio::test(start_paused = true)]
async fn a_late_result_of_another_effect_does_not_block_work_after_an_outage() {
    let bed = Bed::new();
    reason(&bed.perform("a", 1, LONG, (Some(7), None), false).await);
    sleep(LONG).await;
    bed.outage.begin(&silence());
    // Another effect is requested now.
    assert_eq!(reason(&bed.perform("a", 2, SHORT, (Some(8), None), false).await), "KeycloakUnreachable");
    assert_eq!(reason(&bed.perform("a", 2, SHORT, (Some(8), None), false).await), "KeycloakUnreachable");
}

#[tokio::test(start_paused = true)]
async fn a_partial_answer_is_not_an_outage() {
    let bed = Bed::new();
    // The account was read, and then the mail was not accepted in time. The mail is retried separately, with backoff.
    let outcome = bed.perform("a", 1, SHORT, (Some(7), Some(silence())), false).await;
    assert!(outcome.result == Some(7) && matches!(outcome.error, Some(EffectError::Failed(_))));
    assert!(bed.outage.reason().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_panic_fails_only_its_object() {
    let bed = Bed::new();
    let work = async { panic!("a defect") };
    let outcome = bed.work.perform(&tenant("a"), &Count(1), false, work).await;
    let Some(EffectError::Failed(problem)) = outcome.error else { panic!("{outcome:?}") };
    assert_eq!(problem.reason, "KeycloakPanicked");
    assert_eq!(bed.perform("a", 1, SHORT, (Some(7), None), false).await, EffectOutcome::done(7));
}
