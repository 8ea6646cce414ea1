//! The metrics of the image list loop.

use crate::runtime::metric::declare_metrics;

declare_metrics! {
    /// All of them.
    METRICS;
    Counter => "image_list_queries_total" by {image_list: "the ImageList", result: "`succeeded`, `failed`"}
        "Number of queries of the registries of image lists by list and result"
        "`failed` that rises: the condition `Stale` of the list says why. See [Image lists](../image-lists.md).";
    Gauge => "image_list_last_success_timestamp_seconds" by {image_list: "the ImageList"}
        "Time at which the registry of an image list was last read, in seconds since 1970; absent before"
        "Long ago: the list is old. On a standby replica it is absent.";
}
