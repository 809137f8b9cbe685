// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package availability

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Completion is how an object that runs to completion ended. The zero value means that it has not
// ended.
type Completion struct {
	// Result is Complete or RunFailed.
	Result Result
	// Reason is the controller's reason, such as BackoffLimitExceeded.
	Reason string
}

// Result is the result of a run.
type Result string

const (
	// Complete is the result of a successful run.
	Complete Result = "Complete"
	// RunFailed is the result of a failed run that its controller does not retry.
	RunFailed Result = "Failed"
)

// Ended reports whether the run is over.
func (c Completion) Ended() bool { return c.Result != "" }

// runKind describes how objects of a kind show that their run ended.
type runKind struct {
	// complete and failed are condition types by result. Some kinds use one type, with status False
	// for a failure.
	complete, failed []string
	falseIsFailure   bool
	// phase is the path of the phase in the status; the other two list its values by result.
	phase                        []string
	completePhases, failedPhases []string
	// expires are paths of the fields that make the cluster delete the object after its run.
	expires [][]string
}

// kindsThatRun returns the kinds, other than Pods, whose objects run to completion and must not run
// again.
func kindsThatRun(kind schema.GroupKind) (runKind, bool) {
	ttl := []string{"spec", "ttlSecondsAfterFinished"}
	switch kind.Group {
	case "batch":
		return runKind{complete: []string{"Complete"}, failed: []string{"Failed"}, expires: [][]string{ttl}}, kind.Kind == "Job"
	case "jobset.x-k8s.io":
		return runKind{complete: []string{"Completed"}, failed: []string{"Failed"}, expires: [][]string{ttl}}, kind.Kind == "JobSet"
	case "kubeflow.org":
		return runKind{complete: []string{"Succeeded"}, failed: []string{"Failed"},
			expires: [][]string{{"spec", "runPolicy", "ttlSecondsAfterFinished"}, ttl}}, strings.HasSuffix(kind.Kind, "Job")
	case "tekton.dev":
		return runKind{complete: []string{"Succeeded"}, falseIsFailure: true},
			slices.Contains([]string{"TaskRun", "PipelineRun", "CustomRun"}, kind.Kind)
	case "argoproj.io":
		return runKind{phase: []string{"status", "phase"}, completePhases: []string{"Succeeded"}, failedPhases: []string{"Failed", "Error"},
			expires: [][]string{{"spec", "ttlStrategy"}}}, kind.Kind == "Workflow"
	case "batch.volcano.sh":
		return runKind{phase: []string{"status", "state", "phase"}, completePhases: []string{"Completed"},
			failedPhases: []string{"Failed", "Aborted", "Terminated"}, expires: [][]string{ttl}}, kind.Kind == "Job"
	case "velero.io":
		return runKind{phase: []string{"status", "phase"}, completePhases: []string{"Completed"},
			failedPhases: []string{"Failed", "PartiallyFailed", "FailedValidation"},
			expires:      [][]string{{"spec", "ttl"}}}, kind.Kind == "Backup" || kind.Kind == "Restore"
	}
	return runKind{}, false
}

// RunsToCompletion reports whether a manifest describes a run that ends and must not be repeated
// because its object is gone.
func RunsToCompletion(manifest *unstructured.Unstructured) bool {
	kind := manifest.GroupVersionKind().GroupKind()
	if isPod(kind) {
		policy, _, _ := unstructured.NestedString(manifest.Object, "spec", "restartPolicy")
		return policy == "Never" || policy == "OnFailure"
	}
	_, is := kindsThatRun(kind)
	return is
}

// Expires reports whether the cluster deletes the object some time after its run.
func Expires(manifest *unstructured.Unstructured) bool {
	of, _ := kindsThatRun(manifest.GroupVersionKind().GroupKind())
	return slices.ContainsFunc(of.expires, func(path []string) bool {
		value, found, err := unstructured.NestedFieldNoCopy(manifest.Object, path...)
		return err == nil && found && value != nil
	})
}

// CompletionOf returns how the run of an object ended.
func CompletionOf(object *unstructured.Unstructured) Completion {
	kind := object.GroupVersionKind().GroupKind()
	if isPod(kind) {
		return ofPod(object)
	}
	of, is := kindsThatRun(kind)
	if !is {
		return Completion{}
	}
	if word, _, _ := unstructured.NestedString(object.Object, of.phase...); len(of.phase) > 0 && word != "" {
		return ofPhase(of, word)
	}
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, c := range conditions {
		fields, _ := c.(map[string]any)
		kind, _ := fields["type"].(string)
		reason, _ := fields["reason"].(string)
		switch done := slices.Contains(of.complete, kind); {
		case done && fields["status"] == "True":
			return Completion{Complete, reason}
		case done && of.falseIsFailure && fields["status"] == "False",
			slices.Contains(of.failed, kind) && fields["status"] == "True":
			return Completion{RunFailed, reason}
		}
	}
	return Completion{}
}

func ofPhase(of runKind, word string) Completion {
	switch {
	case slices.Contains(of.completePhases, word):
		return Completion{Complete, word}
	case slices.Contains(of.failedPhases, word):
		return Completion{RunFailed, word}
	}
	return Completion{}
}

func isPod(kind schema.GroupKind) bool { return kind == schema.GroupKind{Kind: "Pod"} }

func ofPod(pod *unstructured.Unstructured) Completion {
	if !RunsToCompletion(pod) {
		return Completion{} // the kubelet restarts its containers
	}
	phase, _, _ := unstructured.NestedString(pod.Object, "status", "phase")
	reason, _, _ := unstructured.NestedString(pod.Object, "status", "reason")
	switch phase {
	case "Succeeded":
		return Completion{Complete, reason}
	case "Failed":
		return Completion{RunFailed, reason}
	}
	return Completion{}
}

// run evaluates an object that runs to completion.
func run(object *unstructured.Unstructured) Finding {
	ended := CompletionOf(object)
	if !ended.Ended() {
		return Finding{NotTrackable, fmt.Sprintf("The %s has not ended yet; that it ends is not waited for", object.GetKind())}
	}
	return ended.Finding(object.GetKind())
}

// Finding is the evaluation of an object whose run ended this way.
func (c Completion) Finding(kind string) Finding {
	why := ""
	if c.Reason != "" {
		why = ": " + c.Reason
	}
	if c.Result == Complete {
		return Finding{Completed, fmt.Sprintf("The %s is complete%s", kind, why)}
	}
	return Finding{Failed, fmt.Sprintf("The %s failed%s", kind, why)}
}

// Gone is the evaluation of an object whose run ended this way and that is gone. It is not run
// again.
func (c Completion) Gone(kind string) Finding {
	found := c.Finding(kind)
	found.Message += ". It no longer exists on the member and does not run again. To run it again, change its spec"
	return found
}

// GoneUnseen is the evaluation of an expiring object that is gone before anybody saw its run end.
func GoneUnseen(kind string) Finding {
	return Finding{CompletionUnknown, fmt.Sprintf("The %s no longer exists on the member, and the agent has not seen how it ended. "+
		"It expires after it ended and may have run, so it does not run again. To run it again, change its spec", kind)}
}
