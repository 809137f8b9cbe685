// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package availability

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func TestCompletionOf(t *testing.T) {
	conditions := func(all string) string { return `, status: {conditions: [` + all + `]}}` }
	cases := map[string]struct {
		object        string
		runs, expires bool
		want          Completion
		state         State
	}{
		"a Job that runs":             {`{apiVersion: batch/v1, kind: Job, status: {active: 1}}`, true, false, Completion{}, NotTrackable},
		"a Job that is suspended":     {`{apiVersion: batch/v1, kind: Job` + conditions(`{type: Suspended, status: "True"}`), true, false, Completion{}, NotTrackable},
		"a Job whose result is known": {`{apiVersion: batch/v1, kind: Job` + conditions(`{type: SuccessCriteriaMet, status: "True"}`), true, false, Completion{}, NotTrackable},
		"a Job that is complete":      {`{apiVersion: batch/v1, kind: Job` + conditions(`{type: Complete, status: "True", reason: CompletionsReached}`), true, false, Completion{Complete, "CompletionsReached"}, Completed},
		"a Job that failed":           {`{apiVersion: batch/v1, kind: Job` + conditions(`{type: Failed, status: "True", reason: BackoffLimitExceeded}`), true, false, Completion{RunFailed, "BackoffLimitExceeded"}, Failed},
		"a Job that expires":          {`{apiVersion: batch/v1, kind: Job, spec: {ttlSecondsAfterFinished: 0}}`, true, true, Completion{}, NotTrackable},
		"a CronJob":                   {`{apiVersion: batch/v1, kind: CronJob` + conditions(`{type: Complete, status: "True"}`), false, false, Completion{}, NotTrackable},
		"a Pod that runs for good":    {`{apiVersion: v1, kind: Pod, spec: {restartPolicy: Always}, status: {phase: Failed}}`, false, false, Completion{}, NotTrackable},
		"a Pod without a policy":      {`{apiVersion: v1, kind: Pod, status: {phase: Failed}}`, false, false, Completion{}, NotTrackable},
		"a Pod that runs once":        {`{apiVersion: v1, kind: Pod, spec: {restartPolicy: Never}, status: {phase: Running}}`, true, false, Completion{}, NotTrackable},
		"a Pod that is done":          {`{apiVersion: v1, kind: Pod, spec: {restartPolicy: Never}, status: {phase: Succeeded}}`, true, false, Completion{Complete, ""}, Completed},
		"a Pod that failed":           {`{apiVersion: v1, kind: Pod, spec: {restartPolicy: OnFailure}, status: {phase: Failed, reason: Evicted}}`, true, false, Completion{RunFailed, "Evicted"}, Failed},
		"a Workflow":                  {`{apiVersion: argoproj.io/v1alpha1, kind: Workflow, spec: {ttlStrategy: {secondsAfterCompletion: 5}}, status: {phase: Succeeded}}`, true, true, Completion{Complete, "Succeeded"}, Completed},
		"a Workflow that runs":        {`{apiVersion: argoproj.io/v1alpha1, kind: Workflow, status: {phase: Running}}`, true, false, Completion{}, NotTrackable},
		"a TaskRun that failed":       {`{apiVersion: tekton.dev/v1, kind: TaskRun` + conditions(`{type: Succeeded, status: "False", reason: TaskRunTimeout}`), true, false, Completion{RunFailed, "TaskRunTimeout"}, Failed},
		"a TaskRun that runs":         {`{apiVersion: tekton.dev/v1, kind: TaskRun` + conditions(`{type: Succeeded, status: Unknown}`), true, false, Completion{}, NotTrackable},
		"a JobSet":                    {`{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, spec: {ttlSecondsAfterFinished: 5}` + conditions(`{type: Completed, status: "True"}`), true, true, Completion{Complete, ""}, Completed},
		"a Backup":                    {`{apiVersion: velero.io/v1, kind: Backup, spec: {ttl: 720h}, status: {phase: PartiallyFailed}}`, true, true, Completion{RunFailed, "PartiallyFailed"}, Failed},
		"a PyTorchJob":                {`{apiVersion: kubeflow.org/v1, kind: PyTorchJob, spec: {runPolicy: {ttlSecondsAfterFinished: 5}}` + conditions(`{type: Running, status: "False"}, {type: Succeeded, status: "True"}`), true, true, Completion{Complete, ""}, Completed},
		"somebody's own Job":          {`{apiVersion: example.com/v1, kind: Job` + conditions(`{type: Complete, status: "True"}`), false, false, Completion{}, ""},
		"conditions of another shape": {`{apiVersion: batch/v1, kind: Job, status: {conditions: done}}`, true, false, Completion{}, NotTrackable},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			object := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(tc.object), &object.Object); err != nil {
				t.Fatal(err)
			}
			if got := RunsToCompletion(object); got != tc.runs {
				t.Errorf("runs to completion: %t", got)
			}
			if got := Expires(object); got != tc.expires {
				t.Errorf("expires: %t", got)
			}
			if got := CompletionOf(object); got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
			if got := Of(object).State; tc.state != "" && got != tc.state {
				t.Errorf("the state is %s, want %s", got, tc.state)
			}
		})
	}
}
