// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package author answers one question: may this user have this delivered to members?
//
// The gateway reads and writes placed objects with its own permissions. A placement, an override or
// an envelope must not give its author more permissions than they have. So when it is written, the
// gateway sends SubjectAccessReviews for that user to the hub:
//
//   - a placement: may its author read what it selects (get for named objects, list for
//     objects selected by labels or by kind, get on everything in a namespace that is placed
//     with its contents), or `place` it, a verb that delivers without reading? If members'
//     status is mirrored to the hub: may they update the status of the selected objects?
//   - an override: may its author update what it selects, escalate or bind where that is
//     RBAC, and render it where it changes the values of a chart?
//   - an envelope: may its author create what is in it, and escalate or bind?
//
// Which accesses follow from an object is pure (placement.go, override.go, envelope.go): a Question
// holds accesses of which one suffices, and the field that raises it. A Checker answers for one user
// within one request. It makes SubjectAccessReviews in parallel, within a limit, and none twice. The two
// webhooks of one write share results for a few seconds (Cached).
//
// A placement's author is checked from the broadest permission to the narrowest. An administrator
// costs at most two reviews: everything, everywhere. Then the selectors follow one by one, and for a
// namespace in which not everything is allowed, its kinds. A kind without objects in the namespace
// does not have to be allowed now. But the placement records what was allowed, as a selection.Bound.
// Nothing else is selected later, and nothing that an earlier author selected is sent without
// permission (package dispatch).
//
// The mutating webhook writes the answer into an annotation, and replaces any existing value. The
// validating one, which fails closed, repeats the check and rejects a placement with a different annotation
// or none. So a mutating webhook that did not run, or another one that changed the placement
// afterwards, cannot leave anything unchecked. An update that changes neither the spec nor the
// annotation is not checked and keeps the annotation, even if it is missing: a placement from before
// this check stays as it is until its spec is changed, or until somebody writes the annotation and is
// checked.
//
// Permissions that are removed later change nothing. The contents of selected envelopes are checked
// for the authors of the envelopes, since a user who may get an envelope can read its contents.
package author
