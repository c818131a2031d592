// The core's structs as messages, and back.
#ifndef HOLDFAST_SERVER_RPC_TRANSLATE_H_
#define HOLDFAST_SERVER_RPC_TRANSLATE_H_

#include "absl/status/statusor.h"
#include "holdfast/v1/admin_service.pb.h"
#include "holdfast/v1/parameter_service.pb.h"
#include "server/core/calls.h"
#include "server/core/lease_table.h"
#include "server/core/model.h"

namespace holdfast {

// A new CallId each time.
CallContext ToContext(const v1::CallHeader& call);

void Fill(const ModelPosition& position, v1::ModelState& state);
void Fill(const GroupEvent& event, v1::GroupEvent& message);
void Fill(const Attachment& attachment, const ModelLayout& layout, v1::Attached& attached);
// `unit` is the ticket's.
void Fill(const GatherTicket& ticket, const std::string& unit, v1::GatherTicket& message);
void Fill(const RankReport& report, v1::RankStatus& status);
void Fill(const Model& model, v1::ModelStatus& status);

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_RPC_TRANSLATE_H_
