// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

// ObjectFacts are what was read about an object on a member.
type ObjectFacts struct {
	// Kind is the object's kind or resource, as somebody has written it; Namespace may be
	// empty.
	Kind, Namespace, Name string
	Member                string
	// Works are those of the member, or those that could have the object.
	Works []placementv1beta1.Work
	// Fields are the live object's managedFields; Unread is why it could not be read.
	Fields []metav1.ManagedFieldsEntry
	Unread error
	// PlacementOf names the placement of a Work.
	PlacementOf func(metav1.Object) string
}

// Find is where an object comes from.
type Find struct {
	Work     *placementv1beta1.Work
	Manifest *placementv1beta1.ManifestCondition
}

// Matches says whether a manifest is of the object that is asked about.
func (f *ObjectFacts) Matches(id *placementv1beta1.WorkResourceIdentifier) bool {
	kind := strings.ToLower(f.Kind)
	kind, _, _ = strings.Cut(kind, ".")
	return (kind == strings.ToLower(id.Kind) || kind == strings.ToLower(id.Resource)) && id.Name == f.Name &&
		(f.Namespace == "" || id.Namespace == "" || id.Namespace == f.Namespace)
}

// Finds are the Works that have the object.
func (f *ObjectFacts) Finds() []Find {
	var finds []Find
	for i := range f.Works {
		for j := range f.Works[i].Status.ManifestConditions {
			if m := &f.Works[i].Status.ManifestConditions[j]; f.Matches(&m.Identifier) {
				finds = append(finds, Find{&f.Works[i], m})
			}
		}
	}
	return finds
}

// Object says where an object on a member comes from and how it is: first what is wrong, or
// that it is well, then which placement and snapshot it is from and who wrote it.
func Object(f *ObjectFacts) (a Answer, wrong bool) {
	finds := f.Finds()
	if len(finds) == 0 {
		return Answer{Object: RefOf(f.Kind, f.Namespace, f.Name), Member: f.Member, Reason: "no placement brings it there",
			Remedy: "see what is placed: kubectl fleetgate tree PLACEMENT --member " + f.Member, Details: f.writers()}, true
	}
	find := finds[0]
	id := &find.Manifest.Identifier
	a = Answer{Object: RefOf(id.Kind, id.Namespace, id.Name), Member: f.Member}
	placement := f.PlacementOf(find.Work)
	for _, kind := range []string{placementv1beta1.ConditionApplied, placementv1beta1.ConditionDiffReported, placementv1beta1.ConditionAvailable} {
		if c := meta.FindStatusCondition(find.Manifest.Conditions, kind); c != nil && c.Status == metav1.ConditionFalse {
			a.Reason, wrong = verb(kind)+c.Message, true
			a.Remedy, a.vague = remedyFor(c.Reason, c.Message, a, placement), remedyOfMessage(c.Message) == ""
			a.Of, a.Live = &placementv1beta1.ResourceIdentifier{Group: id.Group, Version: id.Version, Kind: id.Kind, Namespace: id.Namespace, Name: id.Name}, kind == placementv1beta1.ConditionAvailable
			break
		}
	}
	if !wrong && find.Manifest.DriftDetails != nil {
		a.Reason, wrong = "it was changed on the member", true
		a.Remedy = remedyFor(placementv1beta1.ReasonFoundDrifts, "", a, placement)
	}
	a.Reason = cmp.Or(a.Reason, "it is as it should be")
	a.Details = append(a.Details, fmt.Sprintf("placed by %s, snapshot %s, in Work %s/%s", cmp.Or(placement, "nobody that is known"),
		cmp.Or(find.Work.Labels[placementv1beta1.ParentResourceSnapshotIndexLabel], "?"), find.Work.Namespace, find.Work.Name))
	for _, other := range finds[1:] {
		a.Details = append(a.Details, fmt.Sprintf("also wanted by %s, in Work %s", f.PlacementOf(other.Work), other.Work.Name))
	}
	a.Details = append(a.Details, f.writers()...)
	return a, wrong
}

// writers are who has written the object, the last first.
func (f *ObjectFacts) writers() []string {
	if f.Unread != nil {
		return []string{"the member could not be asked for it: " + Plain(f.Unread.Error())}
	}
	at := func(e metav1.ManagedFieldsEntry) time.Time {
		if e.Time == nil {
			return time.Time{}
		}
		return e.Time.Time
	}
	fields := slices.SortedFunc(slices.Values(f.Fields), func(a, b metav1.ManagedFieldsEntry) int { return at(b).Compare(at(a)) })
	var lines []string
	for i, e := range fields {
		what := "written"
		if i == 0 {
			what = "last written"
		}
		if e.Subresource != "" {
			what += " (" + e.Subresource + ")"
		}
		lines = append(lines, fmt.Sprintf("%s by %s at %s", what, Plain(e.Manager), at(e).UTC().Format(time.RFC3339)))
	}
	return lines
}
