// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

func eventOf(kind, name, reason, message string) corev1.Event {
	return corev1.Event{InvolvedObject: corev1.ObjectReference{Kind: kind, Namespace: "shop", Name: name}, Reason: reason, Message: message}
}

func TestFollow_AddsEvidenceToProblem(t *testing.T) {
	f := failing(placementv1beta1.ConditionAvailable, placementv1beta1.ReasonManifestNotAvailableYet, "0 of 1 replicas are available")
	for name, test := range map[string]struct {
		seen   Evidence
		unread error
		// details and remedy are those of the answer.
		details, remedy string
	}{
		"nothing": {Evidence{}, nil, "", "wait, or inspect the object"},
		"an unschedulable Pod": {Evidence{Pods: "Pod web-1: Unschedulable: 0/1 nodes are available"}, nil,
			"on the member: Pod web-1: Unschedulable: 0/1 nodes are available", "add nodes to member m"},
		"events, of each kind the newest": {
			Evidence{Events: []corev1.Event{eventOf("ReplicaSet", "web-1", "FailedCreate", "exceeded quota: new"), eventOf("ReplicaSet", "web-1", "FailedCreate", "exceeded quota: old")}}, nil,
			"event of ReplicaSet shop/web-1: FailedCreate: exceeded quota: new", "raise the ResourceQuota"},
		"a member that cannot be read": {Evidence{}, errors.New("pods is forbidden"), "reading events and Pods from the member failed: pods is forbidden", "wait, or inspect the object"},
		"untrusted text":               {Evidence{Events: []corev1.Event{eventOf("Pod", "a", "B", "c\x1b[2J\u202ed\n"+strings.Repeat("x", 64<<10))}}, nil, "event of Pod shop/a: B: c [2J d xxx", "wait, or inspect the object"},
	} {
		t.Run(name, func(t *testing.T) {
			a := Placement(f)[0]
			if a.Of == nil || !a.Live || a.Of.Name != "web" {
				t.Fatalf("it is of %+v, live %v", a.Of, a.Live)
			}
			before := a.Reason
			a.Follow(test.seen, test.unread)
			details := strings.Join(a.Details, "\n")
			if !strings.HasPrefix(details, test.details) || len(details) > 2000 || len(a.Details) > 1 || !strings.Contains(a.Remedy, test.remedy) || a.Reason != before {
				t.Errorf("got %q, remedy: %s", details, a.Remedy)
			}
		})
	}
}

func TestPlacement_RejectedObjectIsNotLive(t *testing.T) {
	if a := Placement(failing(placementv1beta1.ConditionApplied, "ManifestApplyFailed", "exceeded quota"))[0]; a.Live {
		t.Error("a rejected object does not exist on the member")
	}
}

func TestFollow_KeepsRemedyOfStatus(t *testing.T) {
	a := Placement(failing(placementv1beta1.ConditionAvailable, "", "Pod web-1: ImagePullBackOff"))[0]
	before := a.Remedy
	a.Follow(Evidence{Events: []corev1.Event{eventOf("Pod", "web-1", "Failed", "exceeded quota")}}, nil)
	if a.Remedy != before || !strings.Contains(before, "correct the image") {
		t.Errorf("got %q, had %q", a.Remedy, before)
	}
}

func TestLastSeen(t *testing.T) {
	at := func(second int64) time.Time { return time.Unix(second, 0) }
	e := &corev1.Event{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(at(1))}}
	for i, change := range []func(){
		func() {}, func() { e.EventTime = metav1.NewMicroTime(at(2)) }, func() { e.LastTimestamp = metav1.NewTime(at(3)) },
		func() { e.Series = &corev1.EventSeries{LastObservedTime: metav1.NewMicroTime(at(4))} },
	} {
		change()
		if got, want := LastSeen(e), at(int64(i+1)); !got.Equal(want) {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
