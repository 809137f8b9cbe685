// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package template

import (
	"maps"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	addonv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/addon/v1alpha1"
	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
)

// workload is what a cluster reports of a Deployment or DaemonSet; a negative number is not reported.
func workload(resource string, ready, desired int64) workv1.ManifestCondition {
	id := workv1.ResourceIdentifier{Group: "apps", Resource: resource}
	readyName, desiredName := numbersOf(id)
	m := workv1.ManifestCondition{ResourceMeta: workv1.ManifestResourceMeta{Group: "apps", Resource: resource, Namespace: "agents", Name: "a"}}
	for name, number := range map[string]int64{readyName: ready, desiredName: desired} {
		if number >= 0 {
			m.StatusFeedback.Values = append(m.StatusFeedback.Values, workv1.FeedbackValue{Name: name, Value: workv1.FieldValue{Type: workv1.ValueInteger, Integer: &number}})
		}
	}
	return m
}

func workWith(status metav1.ConditionStatus, manifests ...workv1.ManifestCondition) *workv1.ManifestWork {
	work := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Generation: 2}}
	work.Status.ResourceStatus.Manifests = manifests
	for _, kind := range []string{workv1.ConditionAvailable, workv1.ConditionApplied} {
		work.Status.Conditions = append(work.Status.Conditions, metav1.Condition{Type: kind, Status: status, Message: "why", ObservedGeneration: 2})
	}
	return work
}

// the numbers ManifestWorks.
func the(works ...*workv1.ManifestWork) map[int]*workv1.ManifestWork {
	return maps.Collect(slices.All(works))
}

func TestAvailable_FollowsTheWorkloads(t *testing.T) {
	id := func(resource string) workv1.ResourceIdentifier {
		return workv1.ResourceIdentifier{Group: "apps", Resource: resource, Namespace: "agents", Name: "a"}
	}
	both := []workv1.ResourceIdentifier{id("deployments"), id("daemonsets")}
	for name, tc := range map[string]struct {
		probes []workv1.ResourceIdentifier
		works  map[int]*workv1.ManifestWork
		want   string
	}{
		"no ManifestWork":         {both, nil, "Unknown/WorkNotFound/Addon manifestWork is not found"},
		"not reported":            {both, the(&workv1.ManifestWork{}), "Unknown/WorkNotApplied/Addon manifestWork is not applied yet"},
		"not applied":             {both, the(workWith(metav1.ConditionFalse)), "False/WorkNotApplied/why"},
		"no result":               {both, the(workWith(metav1.ConditionTrue)), "Unknown/NoProbeResult/Probe results are not returned"},
		"nothing to probe":        {nil, the(workWith(metav1.ConditionTrue)), "True/ProbeAvailable/dns add-on is available."},
		"one Pod of a Deployment": {both, the(workWith(metav1.ConditionTrue, workload("deployments", 1, 3))), "True/ProbeAvailable/dns add-on is available."},
		"no Pod of a Deployment":  {both, the(workWith(metav1.ConditionTrue, workload("deployments", 0, 3))), "False/ProbeUnavailable/Probe addon unavailable with err desiredNumberReplicas is 3 but readyReplica is 0 for deployments agents/a"},
		"some of a DaemonSet":     {both, the(workWith(metav1.ConditionTrue, workload("daemonsets", 1, 3))), "False/ProbeUnavailable/Probe addon unavailable with err desiredNumberReplicas is 3 but readyReplica is 1 for daemonsets agents/a"},
		"all of a DaemonSet":      {both, the(workWith(metav1.ConditionTrue, workload("daemonsets", 3, 3))), "True/ProbeAvailable/dns add-on is available."},
		"no number":               {both, the(workWith(metav1.ConditionTrue, workload("deployments", -1, 1))), "False/ProbeUnavailable/Probe addon unavailable with err readyReplica is not probed"},
		"several ManifestWorks":   {both, the(workWith(metav1.ConditionTrue, workload("deployments", 1, 1)), workWith(metav1.ConditionTrue, workload("daemonsets", 1, 3))), "False/ProbeUnavailable/Probe addon unavailable with err desiredNumberReplicas is 3 but readyReplica is 1 for daemonsets agents/a"},
		"one of them not applied": {both, the(workWith(metav1.ConditionTrue, workload("deployments", 1, 1)), workWith(metav1.ConditionFalse)), "False/WorkNotApplied/why"},
		"not known how many":      {both, the(workWith(metav1.ConditionTrue, workload("deployments", 1, -1))), "False/ProbeUnavailable/Probe addon unavailable with err desiredNumberReplicas is not probed"},
	} {
		got := available("dns", tc.probes, tc.works)
		if text := string(got.Status) + "/" + got.Reason + "/" + got.Message; text != tc.want {
			t.Errorf("%s: %s", name, text)
		}
	}
	if got := reported(the(workWith(metav1.ConditionTrue, workload("deployments", 1, 1)), workWith(metav1.ConditionTrue, workload("daemonsets", 1, -1)))); len(got) != 1 || got[0].Resource != "deployments" {
		t.Errorf("reported: %v", got)
	}
}

func TestApplied_WaitsForTheCurrentGeneration(t *testing.T) {
	work := workWith(metav1.ConditionTrue)
	if got := applied(the(workWith(metav1.ConditionTrue), work)); got == nil || got.Status != metav1.ConditionTrue {
		t.Errorf("applied: %v", got)
	}
	if got := applied(the(workWith(metav1.ConditionFalse), work)); got == nil || got.Status != metav1.ConditionFalse {
		t.Errorf("failed: %v", got)
	}
	work.Generation = 3
	if got := applied(the(workWith(metav1.ConditionTrue), work)); got != nil {
		t.Errorf("of an earlier generation: %v", got)
	}
}

func TestReportHosting_SaysWhereTheAgentRuns(t *testing.T) {
	addOn := &addonv1alpha1.ManagedClusterAddOn{}
	addOn.Annotations = map[string]string{addonv1alpha1.HostingClusterAnnotation: "host"}
	ReportHosting(&addOn.Status, addOn)
	if c := addOn.Status.Conditions; len(c) != 1 || c[0].Type != "HostingManifestApplied" || c[0].Status != metav1.ConditionFalse ||
		c[0].Message != `The add-on has no hosted mode, so its agent does not run on cluster "host" but on its own; remove annotation addon.open-cluster-management.io/hosting-cluster-name` {
		t.Errorf("got %v", c)
	}
	addOn.Annotations = nil
	if ReportHosting(&addOn.Status, addOn); len(addOn.Status.Conditions) > 0 {
		t.Errorf("not hosted: %v", addOn.Status.Conditions)
	}
}

func TestHooksSucceeded_NeedsAllOfThem(t *testing.T) {
	hook := func(resource, value, text string) (workv1.ManifestConfigOption, workv1.ManifestCondition) {
		m := workv1.ManifestCondition{ResourceMeta: workv1.ManifestResourceMeta{Resource: resource, Name: "h"}}
		m.StatusFeedback.Values = []workv1.FeedbackValue{{Name: value, Value: workv1.FieldValue{String: ptr.To(text)}}}
		return workv1.ManifestConfigOption{ResourceIdentifier: workv1.ResourceIdentifier{Resource: resource, Name: "h"}}, m
	}
	job, done := hook("jobs", "JobComplete", "True")
	pod, succeeded := hook("pods", "PodPhase", "Succeeded")
	_, failed := hook("pods", "PodPhase", "Failed")
	both := []workv1.ManifestConfigOption{job, pod}
	for name, tc := range map[string]struct {
		work *workv1.ManifestWork
		want bool
	}{
		"both":        {workWith(metav1.ConditionTrue, done, succeeded), true},
		"one":         {workWith(metav1.ConditionTrue, done), false},
		"one failed":  {workWith(metav1.ConditionTrue, done, failed), false},
		"not applied": {workWith(metav1.ConditionFalse, done, succeeded), false},
	} {
		if got := hooksSucceeded(tc.work, both); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestLimited_KeepsShortTexts(t *testing.T) {
	if limited("short") != "short" || len(limited(strings.Repeat("x", 5000))) > 1100 {
		t.Error("a text was not limited, or a short one was")
	}
}
