// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/kube/untrusted"
)

// remedy maps messages to what to do about them.
type remedy struct {
	matches *regexp.Regexp
	// text contains {object}, {member} and {placement} for the subject of the answer, {get} and
	// {logs} for the commands that show it.
	text string
}

// byMessage is searched from the top: specific entries precede general ones. The messages are
// those of API servers, of kubelets and of the agent.
var byMessage = []remedy{
	{regexp.MustCompile(`has no kind |no matches for kind|could not find the requested resource|is not installed`),
		"install the CustomResourceDefinition on member {member}, or place it as well; the agent then applies {object}"},
	{regexp.MustCompile(`exceeded quota`),
		"raise the ResourceQuota named in the message on member {member}, or lower the requests of {object}"},
	{regexp.MustCompile(`its role lacks the (rule|permission)|[Ff]orbidden: User\b.*(cannot|attempting)|is attempting to grant`),
		"grant the agent on member {member} the permission named in the message, or do not place {object} on that member"},
	{regexp.MustCompile(`admission webhook .* denied|ValidatingAdmissionPolicy|violates PodSecurity|denied the request`),
		"change {object} to satisfy the admission policy, or change that policy on member {member}"},
	{regexp.MustCompile(`failed calling webhook`),
		"fix the webhook named in the message on member {member}, or delete its webhook configuration"},
	{regexp.MustCompile(`immutable|To have it deleted and (made again|re-created)|may not change once set|updates to .* are forbidden`),
		"revert the change of the immutable field on the hub, or allow deletion and re-creation by annotating {object} on the hub with " + placementv1beta1.ImmutableChangeAnnotation + "=" + placementv1beta1.ImmutableChangeRecreate},
	{regexp.MustCompile(`ErrImagePull|ImagePullBackOff|InvalidImageName|ErrImageNeverPull|pull(ing)? image`),
		"correct the image of {object} on the hub, or give member {member} access to the registry"},
	{regexp.MustCompile(`CrashLoopBackOff|back-off .*restarting|exited with|OOMKilled|RunContainerError|CreateContainerError|CreateContainerConfigError`),
		"check its log: {logs}"},
	{regexp.MustCompile(`nodes are available|Unschedulable|Insufficient (cpu|memory|ephemeral)|no node`),
		"add nodes to member {member} that satisfy the Pods' requirements, or lower the requirements of {object}"},
	{regexp.MustCompile(`because it is being terminated|is being deleted|finalizer`),
		"find out on member {member} which finalizer blocks the deletion, and fix its controller"},
	{regexp.MustCompile(`namespaces? .*not found`),
		"place the namespace as well, or create it on member {member}"},
	{regexp.MustCompile(`of another hub`),
		"set --hub-name on the agent of one of the two hubs; if that hub no longer exists, remove annotation fleetgate.io/hub from the AppliedWork on member {member}"},
	{regexp.MustCompile(`[Tt]he placement is paused|placement .* is paused`),
		"resume the placement: kubectl annotate clusterresourceplacement {placement} " + placementv1beta1.PausedAnnotation + "-"},
	{regexp.MustCompile(`member .* is paused`),
		"resume the member: kubectl annotate membercluster {member} " + placementv1beta1.PausedAnnotation + "-"},
	{regexp.MustCompile(`resourceSelectors match nothing`),
		"create the resources that spec.resourceSelectors of {object} select on the hub, or correct the selectors"},
	{regexp.MustCompile(`chart cannot be rendered|chart could not be fetched|chart takes more|may take charts`),
		"correct the chart, its values or its source on the hub"},
	{regexp.MustCompile(`[Ii]nvalid value|is invalid:|[Uu]nknown field|unmarshal|cannot be handled as`),
		"correct {object} on the hub; the message names the field"},
}

// byReason is used if no message matches: it maps reasons of conditions.
var byReason = map[string]string{
	placementv1beta1.ReasonNotTakenOver:                   "set whenToTakeOver to a value other than Never, or delete {object} on member {member}",
	placementv1beta1.ReasonFailedToTakeOver:               "check whenToTakeOver and allowCoOwnership of the placement, or delete {object} on member {member}",
	placementv1beta1.ReasonFoundDrifts:                    "revert the change on member {member}, make it on the hub, or set whenToApply to Always; to show the difference, run kubectl fleetgate diff {placement}",
	placementv1beta1.ReasonFoundDriftsInDegradedMode:      "correct {object} on the hub; member {member} rejects it; to show the difference, run kubectl fleetgate diff {placement}",
	placementv1beta1.ReasonDecodingErred:                  "correct {object} on the hub, or its envelope",
	placementv1beta1.ReasonFoundGenerateName:              "set metadata.name of {object}; generateName is not supported",
	placementv1beta1.ReasonDuplicated:                     "select {object} only once",
	placementv1beta1.ReasonFieldsNotApplied:               "correct {object}, or the kind or webhook on member {member} that changed it, or annotate {object} with " + placementv1beta1.LeaveToMemberAnnotation + ": {get}",
	placementv1beta1.ReasonCompletionUnknown:              "check what {object} has done; to run it again, change its spec",
	placementv1beta1.ReasonHealthCheckInvalid:             "correct the health annotation of {object} on the hub; the message names it",
	placementv1beta1.ReasonReserved:                       "remove {object} from the placement: fleetgate reserves its namespace or name",
	placementv1beta1.ReasonFailedToFindObjInMemberCluster: "check that the API server of member {member} serves this kind: {get}",
	placementv1beta1.ReasonFailed:                         "inspect {object} on member {member}: {get}",
	placementv1beta1.ReasonCorrectionsReverted:            "stop the client that overwrites {object} on member {member}, or remove the object from the placement",
	placementv1beta1.ReasonOverriddenFailed:               "correct the override named in the message",
	placementv1beta1.ReasonInvalidResourceSelectors:       "correct spec.resourceSelectors of placement {placement}",
	placementv1beta1.ReasonManifestNotAvailableYet:        "wait, or inspect the object: {get}",
	placementv1beta1.ReasonRolloutNotStartedYet:           "wait until the members being updated are available, or raise maxUnavailable: kubectl fleetgate tree {placement} --not-ready",
	placementv1beta1.ReasonApplyInProgress:                "wait; if it does not complete, check whether the member is reachable: kubectl fleetgate members {member}",
	placementv1beta1.ReasonSyncWorkFailed:                 "correct the cause named in the message on the hub",
}

// defaultRemedy is for reasons that have no entry.
const defaultRemedy = "look up the reason in docs/reference/reasons.md and inspect the object: {get}"

// remedyOfMessage returns the remedy for a message; empty if none matches.
func remedyOfMessage(message string) string {
	for _, r := range byMessage {
		if r.matches.MatchString(message) {
			return r.text
		}
	}
	return ""
}

// remedyFor sets the remedy for a reason and a message.
func (a *Problem) remedyFor(reason, message, placement string) {
	text := remedyOfMessage(message)
	a.vague = text == ""
	a.Remedy = filled(cmp.Or(text, byReason[currentReason(reason)], defaultRemedy), *a, placement)
}

// filled replaces the placeholders of a remedy.
func filled(text string, a Problem, placement string) string {
	if a.Member == "" {
		text = strings.ReplaceAll(text, "member {member}", "the member")
	}
	return strings.NewReplacer("{object}", untrusted.Line(a.Object), "{member}", untrusted.Line(a.Member), "{placement}", placement,
		"{get}", a.shownBy("get", placement), "{logs}", a.shownBy("logs", placement)).Replace(text)
}

// loggers are the kinds that kubectl logs accepts.
var loggers = []string{"Pod", "Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job"}

// harmless matches names that need no quoting in a command line: members choose the names of
// their objects.
var harmless = regexp.MustCompile(`^[A-Za-z0-9][-.:A-Za-z0-9]*$`)

// shownBy returns the command that shows the object of an answer, ready to be run, or the
// command for the placement's tree if the object cannot be shown.
func (a *Problem) shownBy(verb, placement string) string {
	switch {
	case a.Of != nil && a.Member != "" && harmless.MatchString(a.Of.Kind+a.Of.Group) && harmless.MatchString(a.Of.Name) && harmless.MatchString("n"+a.Of.Namespace):
	case placement != "" && a.Member != "":
		return "kubectl fleetgate tree " + placement + " --member " + a.Member
	case placement != "":
		return "kubectl fleetgate tree " + placement
	default:
		return "kubectl fleetgate members " + a.Member
	}
	if !slices.Contains(loggers, a.Of.Kind) {
		verb = "get"
	}
	kind := strings.ToLower(a.Of.Kind)
	if a.Of.Group != "" {
		kind += "." + a.Of.Group
	}
	command := "kubectl fleetgate " + verb + " " + kind + "/" + a.Of.Name
	if a.Of.Namespace != "" {
		command += " -n " + a.Of.Namespace
	}
	return command + " --member " + a.Member
}

// Remedy is the remedy for a message of a placement's status, or the command that shows more if
// no remedy is known.
func Remedy(message, object, member, placement string) string {
	text := remedyOfMessage(message)
	if text == "" {
		return "kubectl fleetgate why " + placement
	}
	return filled(text, Problem{Object: cmp.Or(object, "placement "+placement), Member: member}, placement)
}
