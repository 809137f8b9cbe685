// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package clustergateway

import (
	"context"
	"errors"
	"net/http"
	"time"

	"k8s.io/apiserver/pkg/audit"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/klog/v2"

	"fleetgate.io/fleetgate/pkg/kube/untrusted"
)

// A Record describes one finished request for a member. It contains no headers and no body, and
// therefore no token.
type Record struct {
	// AuditID is the ID that the hub's API server gave the request. The member's API server gets
	// the same ID.
	AuditID string
	// User is the caller. As is the identity that the member saw, empty if the request did not
	// reach the member.
	User, As string
	Member   string
	// View is the view of the fleet through which the member was read. A record with a View and no
	// Member describes the request for the view itself.
	View string
	// Verb and the following fields describe the request on the member. Path is set for requests
	// that are for no resource.
	Verb, APIGroup, Resource, Subresource, Namespace, Name, Path string
	// Code is the reply's code, 101 for an upgrade.
	Code int
	// Bytes is the size of the reply without its header.
	Bytes int64
	// Ended is why the gateway ended a request early: the caller lost its permission, or was too slow
	// a reader, or the gateway stopped. Empty for all others.
	Ended string
	// Began is when the request arrived; Took lasts until the last byte was sent.
	Began time.Time
	Took  time.Duration
}

// A Recorder stores records. It is called at the end of each request, in the goroutine that served
// it, and must not block.
type Recorder func(context.Context, Record)

// LogRecords logs each record as one line.
func LogRecords(ctx context.Context, r Record) {
	klog.FromContext(ctx).WithName("audit").Info("Request for a member", "auditID", r.AuditID, "user", r.User, "as", r.As,
		"member", r.Member, "view", r.View, "verb", r.Verb, "apiGroup", r.APIGroup, "resource", r.Resource, "subresource", r.Subresource,
		"namespace", r.Namespace, "name", r.Name, "path", r.Path, "code", r.Code, "bytes", r.Bytes, "took", r.Took, "ended", r.Ended)
}

// maxRecorded limits each text in a record that a caller chose.
const maxRecorded = 256

func newRecord(r *http.Request, request *Request, began time.Time) Record {
	record := Record{Member: untrusted.Excerpt(request.Member, maxRecorded), View: untrusted.Excerpt(fannedFrom(r.Context()), maxRecorded), Began: began, AuditID: auditID(r.Context())}
	if caller, ok := apirequest.UserFrom(r.Context()); ok {
		record.User = untrusted.Excerpt(caller.GetName(), maxRecorded)
	}
	info := request.Info
	record.Verb = untrusted.Excerpt(info.Verb, maxRecorded)
	if !info.IsResourceRequest {
		record.Path = untrusted.Excerpt(request.Path, maxRecorded)
		return record
	}
	record.APIGroup, record.Resource, record.Subresource = untrusted.Excerpt(info.APIGroup, maxRecorded), untrusted.Excerpt(info.Resource, maxRecorded), untrusted.Excerpt(info.Subresource, maxRecorded)
	record.Namespace, record.Name = untrusted.Excerpt(info.Namespace, maxRecorded), untrusted.Excerpt(info.Name, maxRecorded)
	return record
}

// Annotations of audit events.
const (
	// AnnotationMember is the member of the request.
	AnnotationMember = "proxy.fleetgate.io/member"
	// AnnotationAs is the identity that the member saw.
	AnnotationAs = "proxy.fleetgate.io/as"
	// AnnotationEnded is why the gateway ended a long-running request.
	AnnotationEnded = "proxy.fleetgate.io/ended"
)

// annotate adds what the audit format of Kubernetes has no field for to the gateway's audit event,
// if there is one. One event cannot name several members, so requests for a view have only records.
func annotate(ctx context.Context, r Record) {
	if r.View != "" {
		return
	}
	audit.AddAuditAnnotationsMap(ctx, map[string]string{
		AnnotationMember: r.Member,
		AnnotationAs:     r.As,
	})
}

// annotateEnd adds why the gateway ended a request, if it did.
func annotateEnd(ctx context.Context, r Record) {
	if r.Ended != "" && r.View == "" {
		audit.AddAuditAnnotation(ctx, AnnotationEnded, r.Ended)
	}
}

// endedBy returns why the gateway ended the request, or nothing if it did not.
func (x *exchange) endedBy() string {
	switch {
	case x == nil:
		return ""
	case x.cut.Load() != nil:
		return (*x.cut.Load()).Error()
	case !endedHere(x.ended):
		return ""
	}
	return untrusted.Excerpt(x.ended.Error(), 2*maxRecorded)
}

// endedHere is true for the causes with which the gateway ends requests.
func endedHere(cause error) bool {
	return errors.Is(cause, errRightLost) || errors.Is(cause, errStopping) || errors.Is(cause, errSlowReader)
}

func auditID(ctx context.Context) string { return audit.GetAuditIDTruncated(ctx) }
