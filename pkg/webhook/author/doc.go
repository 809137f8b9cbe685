// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package author answers one question: may this user have this delivered?
//
// What is placed is read and written by the gateway, with the gateway's rights. So
// that a placement, an override or an envelope is no way around the rights of whoever
// writes it, the hub's own authorizer is asked about that user when it is written:
//
//   - a placement: may its author read what it selects (get for what is named, list for
//     what is selected by labels or as a kind, get on everything in a namespace that is
//     placed with its contents), or `place` it, a verb that delivers without reading; and
//     may they update the status of what they have the hub mirror the member's into;
//   - an override: may its author update what it selects, escalate or bind where
//     that is RBAC, and render it where it writes what a chart is rendered with;
//   - an envelope: may its author create what is in it, and escalate or bind.
//
// Which accesses follow from an object is pure (placement.go, override.go,
// envelope.go): a Question holds accesses of which one suffices, and the field that
// raises it. An Asker answers for one user within one request: SubjectAccessReviews in
// parallel, so many at a time and in all, and none twice.
//
// What a placement's author may is asked from the wide to the narrow. An administrator
// costs two reviews at most: everything, everywhere. Then come the selectors one by one, and for a
// namespace in which not everything is allowed, its kinds. A kind of which there is
// nothing in the namespace now does not have to be allowed: but what has been allowed
// stands on the placement, as a selection.Bound, and nothing else is selected later, nor
// sent of what was selected before for somebody else (package dispatch).
//
// Who decides: the mutating webhook writes the answer into an annotation, replacing
// whatever stands there. The validating one, which fails closed, asks again and refuses
// a placement that says anything else, or nothing: so a mutating webhook that was
// away, or another one that changed the placement after ours, leaves nothing behind that
// was not answered. An update that leaves the spec and the annotation as they were asks
// nothing and keeps the annotation, also its absence: a placement from before the
// question stays what it is until its spec is changed, or somebody writes the
// annotation, which has the question asked about them.
//
// What is not asked: rights that are taken away later change nothing. What
// envelopes that are selected hold was asked of their own authors, since who may get an
// envelope gets what is in it.
package author
