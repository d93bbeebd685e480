//! Scenarios of several real processes: the real client, the real manager, real providers.
#![forbid(unsafe_code)]

mod scenarios {
    mod activation;
    mod alerts;
    mod attacks;
    mod attributes;
    mod background;
    mod bad_input;
    mod categories;
    mod checking;
    mod collection;
    mod completing;
    mod converting;
    mod cut_off;
    mod descriptors;
    mod doctoring;
    mod ends;
    mod exact;
    mod first_events;
    mod forking;
    mod full;
    mod hostile;
    mod imported;
    mod joining;
    mod killing;
    mod kinds;
    mod listing;
    mod logging;
    mod manager;
    mod memory;
    mod modes;
    mod names;
    mod naming;
    mod off;
    mod options;
    mod other_readers;
    mod packets;
    mod pages;
    mod places;
    mod polled;
    mod printing;
    mod privileges;
    mod querying;
    mod readme;
    mod recovering;
    mod skew;
    mod snapshots;
    mod thread_time;
    mod tools;
    mod tracing;
    mod users;
    mod viewing;
    mod writing;
}
