//! The metrics of the image list loop.

use crate::runtime::metric::declare_metrics;

declare_metrics! {
    /// All metrics of the image list loop.
    METRICS;
    Counter => "image_list_queries_total" by {image_list: "the ImageList", result: "`succeeded`, `failed`"}
        "Number of queries of the registries of image lists by list and result"
        "`failed` that rises: the condition `Stale` of the list says why. See [Image lists](../image-lists.md).";
    Gauge => "image_list_last_success_timestamp_seconds" by {image_list: "the ImageList"}
        "Time of the last read of an image list's registry, in seconds since 1970; absent before the first one"
        "Long ago: the list is old. On a standby replica it is absent.";
}
