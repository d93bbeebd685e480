//! Programs in C and C++, compiled by gcc and by clang, recorded by the real client.
#![forbid(unsafe_code)]

mod native {
    mod bindings;
    mod chromium;
    mod copies;
    mod dying;
    mod headers;
    mod hosting;
    mod hosts;
    mod installed;
    mod json;
    mod kinds;
    mod known;
    mod local;
    mod memory;
    mod perfetto;
    mod processes;
    mod programs;
    mod reading;
    mod recording;
    mod sanitizers;
    mod symbols;
    mod words;
}
