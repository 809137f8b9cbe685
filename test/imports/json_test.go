// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package imports

import (
	"regexp"
	"testing"
)

// jsonReaders make values of JSON. Three bytes of it can become three hundred, so it matters
// whose it is and into what it is read.
var jsonReaders = map[string]*regexp.Regexp{
	"encoding/json":                     regexp.MustCompile(`^(Unmarshal|NewDecoder)$`),
	"k8s.io/apimachinery/pkg/util/json": regexp.MustCompile(`^Unmarshal`),
	"k8s.io/apimachinery/pkg/util/yaml": regexp.MustCompile(`^NewYAMLOrJSONDecoder`),
	"sigs.k8s.io/json":                  regexp.MustCompile(`^Unmarshal`),
}

const (
	ofReviews = "it reads reviews, which come of the API server only and are bounded before they are read (pkg/webhook/intake)"
	ofObjects = "it reads an object, or a part of one, that an API server has stored: 3 MiB at most, decoded there before"
	ofOurs    = "it reads what we have written ourselves"
	ofHub     = "it reads answers of the hub, which everybody here trusts"
	ofFew     = "what it reads has a few kilobytes, which its caller bounds"
	ofPeople  = "it runs on the machine of who asks, and reads what hub and members answer them"
	ofItems   = "it decodes a few fields of one item or event, of 8 MiB at most (MaxItem), and no list of them"
)

// jsonOtherwise are the files, and folders, that read JSON without pkg/kube/untrusted.
var jsonOtherwise = map[string]string{
	"pkg/kube/untrusted/json.go":  "it is the reader",
	"pkg/kube/configfile/load.go": "what it loads is the reader's JSON",

	"pkg/webhook/immutability/author.go":   ofReviews,
	"pkg/webhook/immutability/request.go":  ofReviews,
	"pkg/webhook/conversion/handler.go":    ofReviews,
	"pkg/webhook/conversion/fields.go":     ofReviews,
	"pkg/webhook/placement.go":             ofReviews,
	"pkg/webhook/managedcluster.go":        ofReviews,
	"pkg/webhook/clusterconfigurations.go": ofReviews,
	"pkg/webhook/validation/envelope.go":   ofReviews,

	"pkg/install/revert.go":                             ofObjects,
	"pkg/placement/snapshot/envelope.go":                ofObjects,
	"pkg/placement/helmchart/release.go":                ofObjects,
	"pkg/placement/override/variables.go":               ofObjects,
	"pkg/placement/ocm/scheduler/clustercel/cluster.go": ofObjects,
	"pkg/placement/statusback/report.go":                ofObjects,
	"pkg/placement/statusback/controller.go":            ofObjects,
	"pkg/placement/selection/bound.go":                  ofObjects,
	"pkg/addon/hub/template/render/render.go":           "it decodes what pkg/kube/untrusted has checked, with numbers as Kubernetes has them",
	"pkg/work/manifest/identity.go":                     ofObjects,
	"pkg/work/manifest/decode.go":                       ofObjects,
	"pkg/work/engine/applied.go":                        ofObjects,
	"pkg/work/engine/derived.go":                        ofObjects,
	"pkg/work/engine/fields.go":                         ofObjects,
	"pkg/work/engine/leave.go":                          ofObjects,
	"pkg/work/engine/pullsecrets.go":                    ofObjects,
	"pkg/work/engine/merge/lists.go":                    ofObjects,
	"pkg/work/engine/merge/remembered.go":               ofObjects,
	"pkg/work/engine/merge/merge.go":                    ofObjects,
	"pkg/work/agent/apply/details.go":                   ofObjects,
	"pkg/work/agent/manifestwork/ignore.go":             ofObjects,
	"pkg/cluster/hub/profile/published.go":              ofOurs,
	"pkg/cluster/sealing/sealing.go":                    "it reads what only the hub can have sealed",
	"pkg/cluster/agent/heartbeat/claims.go":             "it reads what the agent's own member has",
	"pkg/placement/helmchart/process.go":                "it reads what a process of ours says, of which its caller keeps a bounded part",
	"pkg/placement/helmchart/engine/serve.go":           "it runs in a process of its own, with limits of time and memory",
	"pkg/placement/helmchart/engine/documents.go":       "it runs in a process of its own, with limits of time and memory",
	"pkg/serviceaccount/agent/impersonation/grants.go":  ofFew,
	"pkg/tunnel/info.go":                                ofFew,
	"pkg/tunnel/hub.go":                                 ofFew,
	"pkg/apiserver/clustergateway/grants.go":            ofFew,
	"pkg/apiserver/clustergateway/actions.go":           ofFew,
	"pkg/apiserver/fleetview/reply.go":                  ofFew,
	"pkg/apiserver/fleetview/token.go":                  ofFew,
	"pkg/apiserver/fleetview/splice/columns.go":         "columns are those of one table, of a mebibyte at most",
	"pkg/apiserver/fleetview/splice/reader.go":          ofItems,
	"pkg/apiserver/fleetview/splice/mark.go":            ofItems,
	"pkg/apiserver/fleetview/splice/stream.go":          ofItems,
	"cmd/kubectl-fleetgate/app/":                        ofPeople,
	"pkg/inspect/":                                      ofPeople,
	"pkg/console/":                                      ofPeople,
	"pkg/cluster/agent/enroll/admission.go":             ofHub,
}

// TestJSONOfOthersIsReadWithinBounds requires new readers of JSON to state why their input is
// bounded.
func TestJSONOfOthersIsReadWithinBounds(t *testing.T) {
	holdReaders(t, jsonReaders, jsonOtherwise)
}
